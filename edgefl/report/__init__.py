"""Runs for people: one page about a run, and runs side by side.

figure.py       a chart as plain data, which Python and a live page draw with the same script
curves.py       a run over its rounds
pictures.py     devices by labels, by layers, by channels: heatmaps
coverage.py     how many devices train each layer
devices.py      one row a device: what it had, did and cost
headlines.py    a run in a few figures, and what was asked
comparison.py   runs side by side: figures, differences, warnings
overlays.py     the curves of several runs over each other
words.py        numbers as people read them
markup.py       HTML from values: the one place that escapes
tables.py       tables and lists of the pages
library.py      the charting library, as it was installed
page.py         the shell of a page: everything inside it, and a policy that lets nothing out
run_page.py, comparison_page.py
                the two pages
static/         style.css, charts.js, tables.js: shared by every page, none needs an inline handler or style

`edgefl report` and `edgefl compare` call this. Everything but `library.py` is a function from values to values; nothing
here writes a file.
"""

from edgefl.report.comparison import Comparison, comparison_of
from edgefl.report.comparison_page import comparison_page
from edgefl.report.figure import Figure
from edgefl.report.run_page import run_page

__all__ = ["Comparison", "Figure", "comparison_of", "comparison_page", "run_page"]
