"""The service that plans rounds, hands out submodels, collects updates and combines them.

It serves exported graphs by digest and never imports torch to run a round. It may use `edgefl` (never `export`
or `device_runtime`).
"""
