"""Steps from one form of the database to the next. `coordinator.storage.migrate` runs them when a store is opened."""
