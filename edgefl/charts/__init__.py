"""Charts and styles of every HTML page: the report of a run, and the coordinator's page.

All modules but `page_assets.py` are pure functions. The folder `static` holds style.css, charts.js and tables.js; none
of them needs inline handlers or styles.

figure.py        a chart as plain data, which `static/charts.js` draws
curves.py        curves over rounds
device_parts.py  a device's submodel in the form that charts need
heatmaps.py      devices by labels, layers and channels
coverage.py      how many devices train each layer
page_assets.py   plotly.js and our own static files
"""

from edgefl.charts.device_parts import DevicePart, part_of
from edgefl.charts.figure import Figure

__all__ = ["Figure", "DevicePart", "part_of"]
