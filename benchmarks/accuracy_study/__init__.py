"""The study behind `python -m benchmarks.accuracy`: every strategy, compared where its paper says it is better.

setups.py           what a comparison is run on: data, partition, model, devices, rounds; the quick and the full study
entries.py          which strategy takes part in which comparison, with which settings
data.py             the data sets, reduced if a comparison needs it
models.py           the networks, exported once, with initial weights for every seed
run.py              one run: a strategy, a set-up, a seed
overlaps.py         how alike the channels of devices with different classes are
ledger.py           finished runs as files, so that an interrupted study can continue
figures.py          means and deviations over seeds
tuning.py           rates by method, chosen on seeds that are not reported
claims.py           the claims of the papers that compare two methods
counted_claims.py   those about bytes and parameters
verdicts.py         held, not held or undecided, by confidence intervals
standard.py         the set-ups of the standard study
report.py           the tables
curves.py           the plots
"""
