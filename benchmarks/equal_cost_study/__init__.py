"""The study behind `python -m benchmarks.equal_cost`: unequal devices, every method at the same simulated time.

scenarios.py  fleets that differ in compute, memory or network, and how the data is divided
methods.py    plain answers, methods of parts, and networks side by side
run.py        one run: a method, a scenario, a seed
table.py      the tables
"""
