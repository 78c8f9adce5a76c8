"""What the agent's bodies look like on their way."""

import gzip

import numpy as np

from device_runtime.agent.transport import HttpTransport, Reply, Request, packed
from tests.device_runtime.coordinator import Coordinator
from tests.device_runtime.http_coordinator import serving


def test_a_body_that_packs_well_is_packed_always_the_same_way() -> None:
    body = np.packbits(np.random.default_rng(0).random(80_000) < 0.2).tobytes()
    assert len(packed(body)) < 0.8 * len(body)
    assert packed(body) == packed(body)
    assert gzip.decompress(packed(body)) == body


def test_a_body_that_does_not_or_is_large_goes_as_it_is() -> None:
    for body in (b"", b"short", np.random.default_rng(0).bytes(10_000), bytes(5 * 2**20)):
        assert packed(body) is body


def test_a_packed_body_arrives_whole_and_is_counted_as_it_was_sent() -> None:
    arrived = []

    class Listener(Coordinator):
        def answer(self, request: Request) -> Reply:
            arrived.append(request.body)
            return Reply(200)

    body = bytes(50_000)
    with serving(Listener.__new__(Listener)) as url:
        transport = HttpTransport(url)
        reply = transport.send(Request("PUT", "/v1/tasks/one/result", "token", body))
        transport.close()
    assert arrived == [body]
    assert reply.up_bytes < 1000
