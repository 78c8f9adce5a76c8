"""The coordinator: plans rounds, hands out submodels, collects updates and aggregates them.

It serves exported graphs by digest and never imports torch to run a round. It may use `edgefl`, but not `export` or
`device_runtime`. Each layer imports only from those below it:

http/            the server, its limits and authentication, and the routes
page/            what the web page shows
observability/   logs and metrics
polling/         the answer to a device that asks for work
federations/     the life cycle of federations, their files, models and tables
rounds/          the state machine of rounds, its driver, planning and uploads
storage/         the database and the blob store
thread_pools.py  threads for blocking calls
errors.py        errors with a reason
redaction.py     texts without secrets
"""
