"""`edgefl fed`: manage the federations of a coordinator over its HTTP API.

The run functions import httpx and the values, so building the parser costs nothing.

parser.py            the parser of `edgefl fed`
action.py            the parser of one subcommand
api.py               the client of the coordinator's HTTP API
create.py            `edgefl fed create`
start_and_stop.py    `edgefl fed start`, `pause`, `resume` and `abort`
deadline.py          `edgefl fed deadline`
list_federations.py  `edgefl fed list`
status.py            `edgefl fed status`
rounds.py            `edgefl fed rounds`
devices.py           `edgefl fed devices`
programs.py          `edgefl fed programs`
downloads.py         `edgefl fed telemetry` and `export`
keys.py              `edgefl fed key`, `keys`, `revoke-key` and `revoke-device`
tokens.py            `edgefl fed tokens`
audit.py             `edgefl fed audit`
lifetimes.py         durations and points in time
"""
