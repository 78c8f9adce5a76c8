"""Secrets go unencrypted to this machine alone, unless somebody allows more."""

import pytest

from edgefl.coordinator_url import checked_url, is_this_machine
from edgefl.errors import EdgeFLError

HERE = ["http://127.0.0.1:8000", "http://127.3.2.1", "http://[::1]:8000", "http://localhost:8000/", "HTTP://LOCALHOST"]
ELSEWHERE = [
    "http://10.0.0.5:8000",
    "http://example.org",
    "http://0.0.0.0:8000",
    "http://[2001:db8::1]:8000",
    "http://localhost.example.org",
    "http://127.0.0.1.example.org",
    "http://127.1.example.org:8000/127.0.0.1",
    "HTTP://example.org",
    "http://2130706433",
]
NOT_URLS = [
    "",
    "10.0.0.5:8000",
    "ftp://127.0.0.1",
    "file:///etc/passwd",
    "http://",
    "http://127.0.0.1:port",
    "http://127.0.0.1:99999",
    "http://[::1",
    "http://127.0.0.1@example.org",
    "http://example.org\\@127.0.0.1",
    "http://127.0.0.1\n.example.org",
    "http://127.0.0.1 .example.org",
    "http://127.0.0.1#@example.org",
    "http://127.0.0.1?@example.org",
    "http://127。0。0。1",
]


@pytest.mark.parametrize("url", HERE)
def test_this_machine_may_be_addressed_without_encryption(url: str) -> None:
    assert checked_url(url) == url.rstrip("/")
    assert is_this_machine(url)


@pytest.mark.parametrize("url", ELSEWHERE)
def test_another_host_needs_encryption_or_permission(url: str) -> None:
    with pytest.raises(EdgeFLError, match="--insecure"):
        checked_url(url)
    assert checked_url(url, insecure=True) == url
    assert checked_url(url.lower().replace("http:", "https:")).startswith("https:")
    assert not is_this_machine(url)


@pytest.mark.parametrize("url", NOT_URLS)
def test_what_readers_of_urls_could_disagree_about_is_refused_even_with_permission(url: str) -> None:
    with pytest.raises(EdgeFLError, match="is not a coordinator URL"):
        checked_url(url, insecure=True)


def test_the_http_client_connects_to_the_host_that_was_checked() -> None:
    httpx = pytest.importorskip("httpx")
    for url in HERE:
        assert is_this_machine(f"http://{httpx.URL(url).netloc.decode()}")
    for url in ELSEWHERE:
        assert not is_this_machine(f"http://{httpx.URL(url).netloc.decode()}")
