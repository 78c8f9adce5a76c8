"""What the coordinator keeps: records in a database, bodies in a blob store, each behind one Protocol.

records             federations, rounds, tasks, devices, keys as plain values
store, blobs        the Protocols of the database and of the blob store
open                from a URL to either of them: all that the rest of the coordinator calls

sql_store           the store over SQLite and PostgreSQL, from one sql_ file a concern
database, tables    transactions and what differs between the two; the tables
schema, migrations  from an older form of the tables to this one
folder, remote      bodies in a folder, or in anything that fsspec knows, such as S3
"""
