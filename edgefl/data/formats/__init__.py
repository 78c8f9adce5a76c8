"""One published file format a file; each describes the sets it can read as `Source` values."""
