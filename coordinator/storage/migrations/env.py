"""Runs the migrations on the connection that `coordinator.storage.migrate` opened. Alembic calls it."""

from alembic import context

from coordinator.storage.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite alters a table by creating it again
)
with context.begin_transaction():
    context.run_migrations()
