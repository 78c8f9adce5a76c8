"""Federations: their life cycle, the TOML file that describes one, and what can be downloaded from them."""
