"""The coordinator's web page: what an operator sees, live.

The page uses the public routes (`coordinator.http.routes`) and those of `coordinator.http.routes.page`. Its own files
(HTML, styles, scripts) are in `static`, which is not a package.

live_updates.py   the changes of a federation, for everyone who watches it
live_snapshot.py  the state of a federation, and what changed since the last read
device_rows.py    one row for each device: its state and why, and what it did last
task_facts.py     what a task was and cost, in a few plain values
charts.py         the charts of a federation, its masks and its devices
static_files.py   the files of the page, and their content security policy
"""
