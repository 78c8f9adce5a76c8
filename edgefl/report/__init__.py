"""HTML pages about simulated runs: one run, or a comparison.

`edgefl report` and `edgefl compare` call this package. It consists of pure functions and writes no files.

headlines.py          key figures and settings of a run
device_rows.py        one row per device
run_charts.py         charts of a run over its rounds
comparison.py         comparison of runs: figures, differences, warnings
equal_cost.py         runs at equal seconds, joules and bytes
equal_cost_tables.py  the same as tables
comparison_charts.py  overlaid curves of several runs
html_elements.py      HTML elements, and the one place that escapes
tables.py             tables and lists
page.py               the frame of a page, with its Content-Security-Policy
run_page.py           the page about one run
comparison_page.py    the page that compares runs
"""

from edgefl.report.comparison import Comparison, comparison_of
from edgefl.report.comparison_page import comparison_page
from edgefl.report.run_page import run_page

__all__ = ["Comparison", "comparison_of", "comparison_page", "run_page"]
