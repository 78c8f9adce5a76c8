"""The study behind `python -m benchmarks.accuracy`: every strategy, compared where its paper says it is better.

setups.py   what a comparison is run on: data, partition, model, devices, rounds
entries.py  which strategy takes part in which comparison, with which settings
data.py     the data sets, reduced if a comparison needs it
models.py   the networks, exported once, with initial weights for every seed
run.py      one run: a strategy, a set-up, a seed
ledger.py   finished runs as files, so that an interrupted study can continue
figures.py  means and deviations over seeds
claims.py   the claims of the papers, held or not held
report.py   the tables
curves.py   the plots
"""
