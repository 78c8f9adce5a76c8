"""Requests over HTTP: packed where the coordinator takes it, counted as sent, asked for again where they broke off."""

import contextlib
import gzip
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from device_runtime.agent.artifact_cache import ArtifactCache, DamagedError
from device_runtime.agent.client import CoordinatorClient, RejectedError
from device_runtime.agent.transport import BODY, GarbledError, HttpTransport, Reply, Request, UnreachableError
from edgefl.values import Assignment, Outcome, Receipt, digest_of, dumps
from edgefl.wire import encode_weights
from edgefl.wire.byte_shuffle import CODINGS as PLANES
from edgefl.wire.byte_shuffle import pack, unpack
from tests.device_runtime.coordinator import Coordinator
from tests.device_runtime.http_coordinator import Asked, serving, serving_http

FLOATS = encode_weights({"w": np.random.default_rng(0).normal(0, 0.1, 30_000).astype(np.float32)}, {})
DIGEST = digest_of(FLOATS)
POLL = "/v1/tasks/next"
OFFER = {"Accept-Encoding": PLANES}
Answer = tuple[int, Mapping[str, str], bytes]


@contextlib.contextmanager
def talking(answer: Callable[[Asked], Answer]) -> Iterator[tuple[CoordinatorClient, list[Asked]]]:
    """Give a client of a coordinator that answers so, and what it was asked."""
    asked: list[Asked] = []

    def noting(request: Asked) -> Answer:
        asked.append(request)
        return answer(request)

    with serving_http(noting) as url:
        transport = HttpTransport(url)
        try:
            yield CoordinatorClient(transport, "token"), asked
        finally:
            transport.close()


def coordinator(offer: Mapping[str, str], *, knows_planes: bool = True) -> Callable[[Asked], Answer]:
    """Return a coordinator that offers something in its polls' answers, and takes results packed as it knows."""

    def answer(asked: Asked) -> Answer:
        if asked.path.startswith(POLL):
            return 200, offer, dumps(Assignment(retry_seconds=0)).encode()
        if "edgefl-planes" in asked.headers.get("content-encoding", "") and not knows_planes:
            return 415, OFFER, b'{"error": {"problem": "it is packed", "fix": "Send it as it is."}}'
        return 200, {}, dumps(Receipt(task_id="one", outcome=Outcome.ACCEPTED)).encode()

    return answer


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


def test_a_large_body_is_sent_in_pieces_with_its_length_and_counted() -> None:
    body = np.random.default_rng(0).bytes(1_000_001)
    with talking(coordinator({})) as (client, asked):
        client.upload("one", body)
    assert [one.body for one in asked] == [body]
    assert asked[0].headers["content-length"] == "1000001"
    assert "transfer-encoding" not in asked[0].headers
    assert abs(client.traffic.up - asked[0].size) < 10  # the case of a header's name, and the like


def test_a_result_is_packed_by_planes_once_the_coordinator_has_said_that_it_takes_them() -> None:
    with talking(coordinator(OFFER)) as (client, asked):
        client.upload("one", FLOATS)
        client.poll(0)
        before = client.traffic.up
        client.upload("one", FLOATS)
        sent = client.traffic.up - before
    first, _, second = asked
    assert "edgefl-planes" not in first.headers.get("content-encoding", "")
    assert second.headers["content-encoding"] == PLANES
    assert unpack(second.body) == FLOATS
    assert sent == second.size


@pytest.mark.parametrize("offer", [{}, {"Accept-Encoding": "gzip"}, {"Accept-Encoding": "edgefl-planes"}])
def test_a_coordinator_that_does_not_offer_planes_gets_none(offer: Mapping[str, str]) -> None:
    with talking(coordinator(offer, knows_planes=False)) as (client, asked):
        client.poll(0)
        assert client.upload("one", FLOATS).outcome is Outcome.ACCEPTED
        assert client.upload("one", bytes(50_000)).outcome is Outcome.ACCEPTED
    assert asked[1].body == FLOATS
    assert gzip.decompress(asked[2].body) == bytes(50_000)


def test_a_coordinator_that_has_forgotten_planes_gets_the_result_as_it_is() -> None:
    with talking(coordinator(OFFER, knows_planes=False)) as (client, asked):
        client.poll(0)
        before = client.traffic.up
        assert client.upload("one", FLOATS).outcome is Outcome.ACCEPTED
        assert client.traffic.up - before == asked[1].size + asked[2].size
        client.upload("one", FLOATS)
    assert [one.headers.get("content-encoding") == PLANES for one in asked] == [False, True, False, False]
    assert asked[2].body == asked[3].body == FLOATS


def test_only_bodies_with_tensors_are_packed_by_planes() -> None:
    with talking(coordinator(OFFER)) as (client, asked):
        client.poll(0)
        client._transport.send(Request("PUT", "/v1/devices/me/profile", "token", FLOATS, "application/json"))
        client._transport.send(Request("PUT", "/v1/tasks/one/result", "token", FLOATS, BODY))
    assert [one.headers.get("content-encoding") for one in asked[1:]] == [None, PLANES]


def test_an_answer_packed_with_gzip_is_read_and_counted_as_it_came() -> None:
    plan = dumps(Assignment(retry_seconds=3)).encode()
    for content, headers in ((plan, {}), (gzip.compress(plan), {"Content-Encoding": "gzip"})):
        with talking(lambda asked, sent=(200, headers, content): sent) as (client, asked):  # type: ignore[misc]
            assert client.poll(0).retry_seconds == 3
            assert asked[0].headers["accept-encoding"] == "gzip"
            assert len(content) < client.traffic.down < len(content) + 300


def test_an_answer_that_unpacks_to_too_much_or_not_at_all_counts_as_none() -> None:
    for content in (gzip.compress(bytes(50_000_000)), b"no gzip"):
        with (
            talking(lambda asked, sent=content: (200, {"Content-Encoding": "gzip"}, sent)) as (client, _),  # type: ignore[misc]
            pytest.raises(GarbledError),
        ):
            client.poll(0)


def test_what_a_coordinator_says_is_wrong_is_read_packed_too() -> None:
    said = gzip.compress(b'{"error": {"problem": "no such task", "fix": "Drop it."}}')
    with (
        talking(lambda asked: (404, {"Content-Encoding": "gzip"}, said)) as (client, _),
        pytest.raises(RejectedError, match="no such task"),
    ):
        client.upload("one", FLOATS)


@pytest.mark.parametrize(
    ("coding", "sent"),
    [(PLANES, pack(FLOATS)), ("gzip", gzip.compress(FLOATS)), ("", FLOATS)],
    ids=["planes", "gzip", "plain"],
)
def test_a_download_is_kept_unpacked_and_counted_as_it_came(tmp_path: Path, coding: str, sent: bytes) -> None:
    with talking(lambda asked: (200, {"Content-Encoding": coding} if coding else {}, sent)) as (client, asked):
        cache = ArtifactCache(tmp_path)
        assert cache.get(DIGEST, client.download) == FLOATS
        assert cache.get(DIGEST, client.download) == FLOATS
        assert len(sent) < client.traffic.down < len(sent) + 300
    assert len(asked) == 1
    assert asked[0].headers["accept-encoding"] == PLANES


@pytest.mark.parametrize(
    ("coding", "sent"),
    [
        (PLANES, pack(FLOATS)[:-9]),
        (PLANES, b"no gzip"),
        (PLANES, gzip.compress(bytes(10**8))),
        ("gzip", gzip.compress(FLOATS)[:-9]),
        ("gzip", gzip.compress(bytes(10**8))),
        ("br", FLOATS),
    ],
)
def test_a_packed_download_that_is_damaged_is_asked_for_again_as_it_is(
    tmp_path: Path, coding: str, sent: bytes
) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.headers["accept-encoding"] == "identity":
            return 200, {}, FLOATS
        return 200, {"Content-Encoding": coding}, sent

    with talking(answer) as (client, asked):
        cache = ArtifactCache(tmp_path)
        with pytest.raises(DamagedError, match=DIGEST):
            cache.get(DIGEST, client.download)
        assert cache.get(DIGEST, client.download) == FLOATS
    assert "range" not in asked[1].headers


def test_a_packed_download_that_its_digest_does_not_name_is_damaged(tmp_path: Path) -> None:
    other = pack(FLOATS[:-1])
    with talking(lambda asked: (200, {"Content-Encoding": PLANES}, other)) as (client, _):
        with pytest.raises(DamagedError, match=DIGEST):
            ArtifactCache(tmp_path).get(DIGEST, client.download)
        assert client.traffic.down > len(other)


def test_a_packed_download_that_breaks_off_goes_on_unpacked_where_it_breaks_off_next(tmp_path: Path) -> None:
    packed, half = pack(FLOATS), len(FLOATS) // 2

    def answer(asked: Asked) -> Answer:
        if "range" in asked.headers:
            start = int(asked.headers["range"].removeprefix("bytes=").rstrip("-"))
            return 206, {}, FLOATS[start:]
        if asked.headers["accept-encoding"] == PLANES:
            return 200, {"Content-Encoding": PLANES, "Content-Length": str(len(packed))}, packed[:-100]
        return 200, {"Content-Length": str(len(FLOATS))}, FLOATS[:half]

    with talking(answer) as (client, asked):
        cache = ArtifactCache(tmp_path)
        for _ in range(2):
            with pytest.raises(UnreachableError):
                cache.get(DIGEST, client.download)
        assert client.traffic.down >= len(packed) - 100 + half
        assert cache.get(DIGEST, client.download) == FLOATS
    assert [one.headers["accept-encoding"] for one in asked] == [PLANES, "identity", "identity"]
    assert asked[2].headers["range"] == f"bytes={half}-"


def test_a_gzip_download_that_breaks_off_goes_on_behind_what_was_unpacked(tmp_path: Path) -> None:
    text = b"".join(b"node %d\n" % number for number in range(50_000))
    packed = gzip.compress(text)

    def answer(asked: Asked) -> Answer:
        if "range" in asked.headers:
            return 206, {}, text[int(asked.headers["range"].removeprefix("bytes=").rstrip("-")) :]
        return 200, {"Content-Encoding": "gzip", "Content-Length": str(len(packed))}, packed[: len(packed) // 2]

    with talking(answer) as (client, asked):
        cache = ArtifactCache(tmp_path)
        with pytest.raises(UnreachableError):
            cache.get(digest_of(text), client.download)
        assert cache.get(digest_of(text), client.download) == text
    assert int(asked[1].headers["range"].removeprefix("bytes=").rstrip("-")) > len(text) // 4


def test_requests_say_no_more_than_they_must() -> None:
    with talking(coordinator(OFFER)) as (client, asked):
        client.poll(0)
    assert set(asked[0].headers) == {"host", "user-agent", "accept-encoding", "authorization", "content-length"}
