"""Runs for people: one page about a run, and runs side by side.

curves.py       a run over its rounds
devices.py      one row a device: what it had, did and cost
headlines.py    a run in a few figures, and what was asked
comparison.py   runs side by side: figures, differences, warnings
overlays.py     the curves of several runs over each other
markup.py       HTML from values: the one place that escapes
tables.py       tables and lists of the pages
page.py         the shell of a page: everything inside it, and a policy that lets nothing out
run_page.py, comparison_page.py
                the two pages

`edgefl report` and `edgefl compare` call this. The charts themselves are in `edgefl.charts`. Functions from values to
values; nothing here writes a file.
"""

from edgefl.report.comparison import Comparison, comparison_of
from edgefl.report.comparison_page import comparison_page
from edgefl.report.run_page import run_page

__all__ = ["Comparison", "comparison_of", "comparison_page", "run_page"]
