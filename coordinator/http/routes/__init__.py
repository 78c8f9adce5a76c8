"""The routes, one file per subject. A route reads the request, calls one function, and writes the response.

registration.py      adds a route, which must say who may call it
request_bodies.py    reads request bodies
responses.py         writes responses
view_models.py       what operators send and get, as Pydantic models
conversion.py        records as those models
tasks.py             devices: the next task, results and refusals
artifacts.py         devices: downloads by digest
enrolment.py         devices: enrolment, profiles and capabilities
sample.py            devices: what a sample of their federation is
measurement.py       devices: what they measure themselves with
network_speed.py     devices: transfers that measure the network
bundles.py           operators: upload of exported models
programs.py          operators: compiled programs, what is wanted and who compiles it
tokens.py            operators: their tokens
audit.py             operators: the audit log
federations.py       operators: create, move and show federations
devices_and_keys.py  operators: devices and join keys
downloads.py         operators: models and telemetry
page.py              the web page
pairing.py           pins for devices, and the page that a scanned code opens
live_events.py       the response that streams events to the page
health.py            health, readiness, metrics, the OpenAPI document
openapi.py           builds the OpenAPI document
openapi_schemas.py   values of `edgefl.values` as JSON Schema
"""
