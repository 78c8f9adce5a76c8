"""What backs the numbers in the documents. Each file is one command: `python -m benchmarks.<name>`.

Machines differ and are shared, so speeds are medians of runs that alternate between the things compared, in one
process, and what counts is their ratio.
"""
