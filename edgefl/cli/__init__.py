"""The command line: one file a verb, and `main.py` that finds them.

A verb's module imports the standard library and `edgefl.errors` at its top, everything else inside its functions,
so that `edgefl --help` is instant on a bare install. stdout is data, stderr is log and progress.
"""
