"""A coordinator under load: a real server in processes of its own, and many simulated devices beside it.

server.py       `edgefl serve` on a free port of 127.0.0.1, its memory and processor time, and its end
model.py        the model of the federation: small, made without torch
connection.py   one device's HTTP connection
device.py       one device: polls, comes back when told to, uploads
figures.py      what was seen, as a report
run.py          all of it together
"""
