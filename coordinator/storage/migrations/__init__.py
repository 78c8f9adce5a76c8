"""Migrations of the database schema. `coordinator.storage.migrate` runs them when a store is opened.

env.py         what Alembic runs for every command
versions/      the steps
"""
