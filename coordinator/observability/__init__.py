"""Observability: logs and metrics."""
