"""One step a file, each made for good: a database out there may have taken it."""
