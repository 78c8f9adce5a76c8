"""Load test of a coordinator: a real server in its own processes, and many simulated devices.

model.py        a small model, made without torch
connection.py   a device's HTTP connection
device.py       a simulated device: polls, trains nothing, uploads
report_rows.py  the rows of the report
run.py          the whole load test
"""
