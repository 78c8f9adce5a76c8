"""Steps from one form of the database to the next. `coordinator.storage.schema` runs them when a store is opened."""
