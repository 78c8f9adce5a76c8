"""Small programs that show one thing each. They use the public packages only."""
