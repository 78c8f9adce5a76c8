"""The only room that imports torch: from a torch model to graphs that devices can train and run.

It may use `edgefl` (never `coordinator` or `device_runtime`), and nothing but the command line may use it.
"""
