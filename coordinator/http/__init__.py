"""The HTTP layer: the app, its server and workers, middleware, limits, authentication and routes."""
