"""A federation on handwritten digits: its file, its model, and how to run a coordinator as a service."""
