"""The situations, one file per theme. Each has a table of its rows.

enrolment.py        joining: the enrolment, the key, the token
sample.py           what a sample is, and data that differ
pairing.py          pins of keys, with TLS
polling.py          polls: waits, and answers that are none
training.py         updates of every rule that all clients have
downloads.py        artifacts: digests, ranges, compression, caching
uploads.py          results: repeated, acknowledged, rejected
refusals.py         tasks that must be refused
hostile_answers.py  answers that are meant to do harm
ending.py           the end of a federation, and of a token
"""
