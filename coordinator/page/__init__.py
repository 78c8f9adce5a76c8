"""The coordinator's web page: what an operator sees, live.

facts.py     what a task was and cost, in a few plain values
fleet.py     one row a device: its state and why, what it did last against what was predicted
live.py      what has changed since the last look, to everybody who watches; one look a second for all of them
charts.py    the charts of a federation, its masks and its devices, by `edgefl.charts`
files.py     the files of the page, and the policy under which a browser may run them
joining.py   a join key for people: the line to type, and the code to scan
static/      the page itself: HTML, styles and scripts, as they are

The page asks the routes that everybody may ask (`coordinator.http.routes`), and those of
`coordinator.http.routes.page`.
"""
