"""The HTTP layer: the server and its workers, middleware, limits, authentication and routes.

server.py           one coordinator process: opens its storage, listens, serves
workers.py          further worker processes on the same port
server_settings.py  what a process is configured with, and its limits
app.py              the app: routes, middleware, and what starts and stops with it
services.py         what routes work with
routes/             the routes, one file per subject
middleware.py       request ids, log lines, counts
authentication.py   who may call what
operator_tokens.py  the tokens that a coordinator is started with
refusals.py         counts refused attempts, for the audit log
request_limits.py   limits on the size, speed and unpacked size of requests
rate_limits.py      rate limits per caller, uploads at the same time
byte_budgets.py     budgets of bytes for the bodies of all callers together
readiness.py        whether storage can be read and written
error_handlers.py   errors as responses
protocol.py         one connection: uvicorn's protocol with limits
connections.py      how many connections each caller may have, and that it reads its responses
tls.py              what TLS is accepted
own_certificate.py  the certificate that a coordinator makes for itself
public_address.py   where other machines reach it: names, and the address in pairing codes
allocator.py        gives large blocks of memory back when they are freed
"""
