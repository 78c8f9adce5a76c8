"""Rounds: the state machine, its driver, the planner, uploads and garbage collection."""
