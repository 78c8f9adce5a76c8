"""The requests that the coordinator answers, one file a subject. A route reads, asks one function, and writes.

adding      how a route is added: it must say who may call it
bodies      bodies on their way in
answers     bodies on their way out
schemas, openapi
            values of `edgefl.values` as JSON Schema; the whole OpenAPI document
models      what operators send and get, as Pydantic models; conversion makes them from records
devices, tasks, artifacts, speed                      what devices call
federations, results, members, bundles                what operators call
service     health, metrics, the OpenAPI document
"""
