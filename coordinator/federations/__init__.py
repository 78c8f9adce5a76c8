"""Federations: their life cycle, the TOML file that describes one, and what can be downloaded from them.

lifecycle.py               create, start, pause, resume, abort; deadlines and join keys
programs.py                compiled programs: what is wanted, who compiles it, and what is delivered
overview.py                a federation in a few numbers
federation_file.py         reads the TOML file of a federation
federation_file_layout.py  which tables and keys that file has
toml_lines.py              the line of every key in a TOML text
model_downloads.py         the models that come out of a federation
measurement.py             what devices measure themselves with
telemetry_table.py         what every task cost, as a table
tokens.py                  join keys and tokens, and their hashes
join_codes.py              a join key as a command and as a QR code
"""
