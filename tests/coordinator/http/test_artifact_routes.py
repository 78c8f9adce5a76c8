"""Downloads: whole, in ranges, packed, not at all where the caller has it."""

import gzip
from functools import partial

import httpx
import numpy as np
import pytest

from edgefl.federation.cache import LruCache
from edgefl.wire import encode_weights
from edgefl.wire.byte_shuffle import MOST_BYTES, unpack
from tests.coordinator.http.site import Site

TEXT = b"node { op_type: 'Conv' } " * 4000
NOISE = np.random.default_rng(0).bytes(900_000)
WEIGHTS = {
    kind: encode_weights({"w": np.random.default_rng(1).normal(0, 0.1, count).astype(np.float32)}, {"kind": kind})
    for kind, count in (("weights", 100_000), ("extras", 3000))
}


@pytest.fixture(scope="module")
def client(site: Site) -> httpx.Client:
    return site.client(site.device("reader"), **{"Accept-Encoding": "identity"})


@pytest.fixture(scope="module")
def path(site: Site) -> str:
    return f"/v1/artifacts/{site.keep(TEXT)}"


@pytest.fixture(scope="module")
def large(site: Site) -> str:
    return f"/v1/artifacts/{site.keep(NOISE, 'weights')}"


def test_an_artifact_is_its_bytes_with_its_digest_as_tag(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer.content == TEXT
    assert answer.headers["ETag"] == f'"{path.rpartition("/")[2]}"'
    assert answer.headers["Content-Length"] == str(len(TEXT))
    assert "immutable" in answer.headers["Cache-Control"]


def test_a_large_artifact_streams_whole(client: httpx.Client, large: str) -> None:
    answer = client.get(large)
    assert answer.content == NOISE
    assert answer.headers["Content-Length"] == str(len(NOISE))


@pytest.mark.parametrize(
    ("header", "start", "end"),
    [
        ("bytes=0-", 0, 900_000),
        ("bytes=10-19", 10, 20),
        ("bytes=0-0", 0, 1),
        ("bytes=899999-", 899_999, 900_000),
        ("bytes=5-99999999", 5, 900_000),
        ("bytes=-7", 899_993, 900_000),
        ("bytes=-9999999", 0, 900_000),
        ("bytes=100-700099", 100, 700_100),
    ],
)
def test_a_range_is_answered_with_that_part(
    client: httpx.Client, large: str, header: str, start: int, end: int
) -> None:
    answer = client.get(large, headers={"Range": header})
    assert answer.status_code == 206
    assert answer.content == NOISE[start:end]
    assert answer.headers["Content-Range"] == f"bytes {start}-{end - 1}/900000"
    assert answer.headers["Content-Length"] == str(end - start)


@pytest.mark.parametrize("header", ["bytes=900000-", "bytes=1000000-1000001", "bytes=-0"])
def test_a_range_behind_the_end_is_416_and_says_how_much_there_is(
    client: httpx.Client, large: str, header: str
) -> None:
    answer = client.get(large, headers={"Range": header})
    assert answer.status_code == 416
    assert answer.headers["Content-Range"] == "bytes */900000"
    assert answer.json()["error"]["fix"]


@pytest.mark.parametrize("header", ["bytes=", "bytes=-", "bytes=5-2", "bytes=a-b", "lines=1-2", "bytes=0-1,4-5", "x"])
def test_a_range_that_means_nothing_here_gives_all(client: httpx.Client, path: str, header: str) -> None:
    answer = client.get(path, headers={"Range": header})
    assert answer.status_code == 200
    assert answer.content == TEXT


def test_who_has_it_gets_304(client: httpx.Client, path: str) -> None:
    tag = client.get(path).headers["ETag"]
    for header in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        answer = client.get(path, headers={"If-None-Match": header})
        assert answer.status_code == 304
        assert answer.content == b""
        assert answer.headers["ETag"] == tag
    assert client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


def test_if_range_asks_for_all_where_it_names_something_else(client: httpx.Client, path: str) -> None:
    tag = client.get(path).headers["ETag"]
    same = client.get(path, headers={"Range": "bytes=5-9", "If-Range": tag})
    other = client.get(path, headers={"Range": "bytes=5-9", "If-Range": '"other"'})
    dated = client.get(path, headers={"Range": "bytes=5-9", "If-Range": "Wed, 21 Oct 2026 07:28:00 GMT"})
    assert (same.status_code, same.content) == (206, TEXT[5:10])
    assert (other.status_code, other.content) == (200, TEXT)
    assert (dated.status_code, dated.content) == (200, TEXT)


def test_a_graph_is_packed_for_who_asks(client: httpx.Client, path: str) -> None:
    with client.stream("GET", path, headers={"Accept-Encoding": "br, gzip;q=0.5"}) as answer:
        raw = b"".join(answer.iter_raw())
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert len(raw) < len(TEXT) / 5
    assert gzip.decompress(raw) == TEXT
    again = client.get(path, headers={"Accept-Encoding": "gzip", "If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304


@pytest.mark.parametrize("asked", [{"Accept-Encoding": "gzip;q=0"}, {"Accept-Encoding": "gzip", "Range": "bytes=0-9"}])
def test_a_graph_is_not_packed_for_who_does_not_ask_or_wants_a_range(
    client: httpx.Client, path: str, asked: dict[str, str]
) -> None:
    assert "Content-Encoding" not in client.get(path, headers=asked).headers


def test_what_packing_does_not_make_smaller_is_sent_as_it_is(site: Site, client: httpx.Client, large: str) -> None:
    noise = f"/v1/artifacts/{site.keep(NOISE[:5000])}"
    for path in (noise, large):
        assert "Content-Encoding" not in client.get(path, headers={"Accept-Encoding": "gzip"}).headers


@pytest.mark.parametrize("kind", ["weights", "extras"])
def test_weights_are_packed_by_planes_for_who_asks(site: Site, client: httpx.Client, kind: str) -> None:
    path = f"/v1/artifacts/{site.keep(WEIGHTS[kind], kind)}"
    asked = {"Accept-Encoding": "edgefl-planes, gzip"}
    for _ in range(2):  # the second one from memory
        with client.stream("GET", path, headers=asked) as answer:
            raw = b"".join(answer.iter_raw())
        assert answer.headers["Content-Encoding"] == "edgefl-planes, gzip"
        assert answer.headers["ETag"] == f'"{path.rpartition("/")[2]}-planes"'
        assert answer.headers["Vary"] == "Accept-Encoding"
        assert len(raw) < 0.9 * len(WEIGHTS[kind])
        assert unpack(raw) == WEIGHTS[kind]
    again = client.get(path, headers=asked | {"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304


@pytest.mark.parametrize(
    "asked",
    [
        {"Accept-Encoding": "gzip"},
        {"Accept-Encoding": "edgefl-planes"},
        {"Accept-Encoding": "edgefl-planes;q=0, gzip"},
        {"Accept-Encoding": "edgefl-planes, gzip;q=0.0"},
        {"Accept-Encoding": "edgefl-planes, gzip", "Range": "bytes=0-"},
        {"Accept-Encoding": "edgefl-planes, gzip", "Range": "bytes=100-"},
    ],
)
def test_weights_are_not_packed_for_who_does_not_ask_or_wants_a_range(
    site: Site, client: httpx.Client, asked: dict[str, str]
) -> None:
    path = f"/v1/artifacts/{site.keep(WEIGHTS['weights'], 'weights')}"
    answer = client.get(path, headers=asked)
    assert "Content-Encoding" not in answer.headers
    assert answer.content == WEIGHTS["weights"][100 if "100" in asked.get("Range", "") else 0 :]
    assert answer.headers["ETag"] == f'"{path.rpartition("/")[2]}"'


def test_a_graph_is_packed_with_gzip_alone(client: httpx.Client, path: str) -> None:
    answer = client.get(path, headers={"Accept-Encoding": "edgefl-planes, gzip"})
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.content == TEXT


def test_what_is_small_large_or_noise_is_not_packed_by_planes(site: Site, client: httpx.Client) -> None:
    large = encode_weights({"w": np.zeros(MOST_BYTES // 4, np.float32)}, {})
    for content in (WEIGHTS["weights"][:1000], NOISE, large):
        path = f"/v1/artifacts/{site.keep(content, 'weights')}"
        answer = client.get(path, headers={"Accept-Encoding": "edgefl-planes, gzip"})
        assert "Content-Encoding" not in answer.headers
        assert answer.content == content


def test_packed_artifacts_are_kept_up_to_their_bytes_and_noise_is_not_tried_again() -> None:
    made: list[str] = []

    def make(name: str, size: int) -> bytes:
        made.append(name)
        return bytes(size)

    kept: LruCache[str, bytes] = LruCache(100, lambda packed: 10 + len(packed))
    for name, size in (("a", 40), ("empty", 0), ("a", 40), ("empty", 0), ("b", 30), ("a", 40), ("empty", 0)):
        assert len(kept.get(name, partial(make, name, size))) == size
    assert made == ["a", "empty", "b"]
    kept.get("c", partial(make, "c", 1))
    kept.get("empty", partial(make, "empty", 0))
    kept.get("b", partial(make, "b", 30))
    assert made == ["a", "empty", "b", "c", "b"]
    assert len(kept.get("huge", partial(make, "huge", 500))) == 500
    kept.get("c", partial(make, "c", 1))
    assert made[-1] == "huge"  # too large to be kept, and nothing else is dropped for it


def test_an_unknown_artifact_is_404(client: httpx.Client) -> None:
    assert client.get("/v1/artifacts/sha256:" + "0" * 64).status_code == 404
    assert client.get("/v1/artifacts/../../etc/passwd").status_code == 404
    assert client.get("/v1/artifacts/sha256:xyz").status_code == 404


@pytest.mark.parametrize("size", [1000, 600_000])
def test_an_artifact_whose_bytes_are_gone_does_not_exist(site: Site, client: httpx.Client, size: int) -> None:
    digest = site.keep(NOISE[-size:], "weights")
    site.context.blobs.drop(digest)
    answer = client.get(f"/v1/artifacts/{digest}")
    assert answer.status_code == 404
    assert "next task" in answer.json()["error"]["fix"]
