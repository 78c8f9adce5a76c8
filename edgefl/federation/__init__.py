"""A round as the coordinator and the simulator both run it."""
