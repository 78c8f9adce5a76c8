"""`edgefl fed`: what an operator does with the federations of a coordinator, over its HTTP API.

One file a verb, or a few that belong together; `verb.py` gathers them, `api.py` speaks HTTP, `action.py` makes a verb's
parser, `tables.py` prints. httpx and the values are imported by the run functions, so that building the parser costs
nothing.
"""
