"""What the coordinator stores: records in a database, bodies in a blob store.

open.py              opens either of them from a URL; all that the rest of the coordinator calls
records.py           federations, rounds, tasks, devices and keys as plain values
store.py             the database, composed of the parts below
federation_store.py  federations
round_store.py       rounds
task_store.py        tasks
upload_store.py      updates and refusals that devices send
device_store.py      devices, their enrolment with a join key, and their revocation
join_key_store.py    join keys
program_store.py     ExecuTorch programs: compiled, wanted, and leased to those who compile them
artifact_index.py    what devices may download, and what is no longer needed
worker_store.py      leases of workers
token_store.py       the operators' tokens
audit_log.py         who did what, and when
audit_chain.py       the hashes that chain the entries of the audit log
task_endings.py      tasks that end without an update
plan_json.py         the digests that a stored plan names, and the engine in capabilities
row_mapping.py       between records and table rows
tables.py            the tables
database.py          transactions on SQLite and PostgreSQL
sqlite_errors.py     what an error of SQLite means for an operator
write_probe.py       tries whether files can still be written
sqlite_lookups.py    fast lookups by key in an SQLite file
migrate.py           brings an older database to the current schema
migrations/          the steps of the schema
backup.py            copies of a state folder, taken while a coordinator runs
tls_keys.py          the coordinator's own TLS keys: the current and the next one
private_files.py     files that other users of the machine cannot read
blobs.py             the Protocol of the blob store
folder_blobs.py      blobs in a folder
small_blobs.py       small blobs of a folder, together in one SQLite file
remote_blobs.py      blobs at a URL that fsspec knows, such as S3
repository.py        stored bodies and documents, decoded and cached
"""
