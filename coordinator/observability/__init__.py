"""Observability: logs and metrics.

logs.py             one line per event, as text or JSON, without secrets
metrics.py          what Prometheus reads at /metrics
shared_counters.py  counters that all workers share
counter_file.py     the numbers of one process, in a file
"""
