"""The study behind `python -m benchmarks.accuracy`: every strategy, side by side, where its paper says it is better.

setups.py    what a comparison is made on: data, partition, model, devices, rounds
entries.py   which strategy takes part in which comparison, with which settings
data.py      the data sets, smaller where a comparison asks for it
models.py    the networks, exported once, with initial weights for every seed
run.py       one run: a strategy, a set-up, a seed
ledger.py    finished runs as files, so that an interrupted study goes on
figures.py   means and deviations over seeds
claims.py    what the papers say, held or not held
report.py    the tables
curves.py    the plots
"""
