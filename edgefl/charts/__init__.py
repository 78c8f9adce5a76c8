"""Charts and looks of every page that EdgeFL makes: the report of a run, and the coordinator's page.

figure.py     a chart as plain data, which a page draws with `static/charts.js`
curves.py     numbers over rounds
pictures.py   devices by labels, by layers, by channels: heatmaps
coverage.py   how many devices train each layer
device_parts.py  a device's part of a model, in the form that pictures need
plotly_files.py  the charting library, as it was installed
static/       style.css, charts.js, tables.js: none needs an inline handler or style

Everything but `plotly_files.py` is a function from values to values.
"""

from edgefl.charts.device_parts import DevicePart, part_of
from edgefl.charts.figure import Figure

__all__ = ["Figure", "DevicePart", "part_of"]
