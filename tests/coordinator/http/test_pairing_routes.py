"""Pairing over HTTP: the pins for members, the page that a code opens, and what comes with a new key."""

from pathlib import Path

import pytest

from coordinator.http.public_address import PublicAddress
from edgefl.pairing import Pairing
from tests.coordinator.http.site import Site

PINS = ("sha256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "sha256:n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg")


def test_members_get_the_pins(site: Site) -> None:
    key = site.federation()
    for token in (key, site.device("one")):
        with site.agent(token) as agent:
            assert agent.pins() == ()
    site.services.address = PublicAddress("https://10.0.0.5:8443", PINS)
    with site.agent(key) as agent:
        assert agent.pins() == PINS
    assert site.client(None).get("/v1/pins").status_code == 401


def test_the_page_of_a_code_can_send_nothing_and_has_no_secrets(site: Site) -> None:
    answer = site.client(None).get("/join")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "connect-src" not in policy
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "edgefl-key-" not in answer.text
    assert "edgefl join" in answer.text


def test_a_new_key_comes_with_its_code(site: Site) -> None:
    site.federation()
    site.services.address = PublicAddress("https://10.0.0.5:8443", PINS)
    for address, url in (("https://pi.local:8443", "https://pi.local:8443"), (site.url, "https://10.0.0.5:8443")):
        made = site.admin.post("/v1/federations/digits/keys", json={"address": address}).json()
        expected = Pairing(url, made["key"], "digits", PINS)
        assert Pairing.parse(made["uri"]) == Pairing.parse(made["app_uri"]) == expected
        assert made["uri"] in made["join"]
        assert made["qr"].startswith("<svg")
        assert made["app_qr"].startswith("<svg")
        assert made["app_qr"] != made["qr"]
    assert site.admin.post("/v1/federations/digits/keys", json={}).json()["uri"] is None


@pytest.mark.parametrize("address", ["https://a@b", "https://a/%2e%2e", "http://a?b", "https://a:70000"])
def test_an_address_that_no_device_could_use_makes_no_key(site: Site, tmp_path: Path, address: str) -> None:
    site.federation()
    before = len(site.context.store.keys.of("digits"))
    for known in (None, PublicAddress("https://10.0.0.5:8443", PINS)):
        site.services.address = known
        assert site.admin.post("/v1/federations/digits/keys", json={"address": address}).status_code == 422
    assert len(site.context.store.keys.of("digits")) == before
