"""A coordinator under load: a real server in processes of its own, and many simulated devices beside it.

model.py        the model of the federation: small, made without torch
connection.py   one device's HTTP connection
device.py       one device: polls, comes back when told to, uploads
figures.py      what was seen, as a report
run.py          all of it together; the server is `edgefl.coordinator_process`
"""
