"""Observability: logs and metrics.

logs.py     one line per event, as text or JSON, without secrets
metrics.py  what Prometheus reads at /metrics
"""
