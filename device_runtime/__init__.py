"""What runs on the device: engines, training, profiling, telemetry and the agent.

It must start on a machine that has only numpy, onnxruntime, safetensors and an HTTP client: no torch, no web
framework, no solver. It may use `edgefl` (never `coordinator` or `export`).
"""
