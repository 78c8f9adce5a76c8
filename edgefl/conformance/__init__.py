"""The conformance suite: plays a coordinator that leads any client through every situation, and says what it did wrong.

catalogue.py       every row, in the order of the table
situations/        what a client is led into, one file per theme
situation.py       the seam: a row of the table, and its situation
suite.py           one run: server, clients, acts, report
director.py        leads a client from situation to situation
stage.py           the ordinary coordinator
messages.py        requests as they came, and answers with what is to go wrong
http_server.py     HTTP on raw sockets, which can be cut anywhere
tls_identities.py  the keys of a run with TLS
client_starts.py   how a client is started
tasks.py           tasks, and the right result of each
report.py          the table, and the same as JSON
samples.py         the data that a client is given
update_check.py    compares an update with the right one
"""
