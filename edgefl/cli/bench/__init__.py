"""`edgefl bench`: one file an action, and what they share.

verb.py       the verb and its actions
options.py    options that several actions have
show.py       a report as a table on stdout, or as JSON; progress on stderr
picture.py    a report as bars
"""
