"""Pairing URIs: what is read, what is refused, and that both forms mean the same."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.errors import EdgeFLError
from edgefl.pairing import LONGEST_URI, Pairing
from edgefl.pins import MOST_PINS, pin_of_key
from tests.golden import pairing_file

GOLDEN = json.loads((Path(__file__).parent / "golden" / "pairing.json").read_bytes())
KEY = "edgefl-key-" + "k" * 43
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

keys = st.text(LETTERS + "-_", min_size=1, max_size=128).map("edgefl-key-".__add__)
names = st.builds(str.__add__, st.sampled_from(LETTERS), st.text(LETTERS + "._:-", max_size=127))
hosts = st.sampled_from(["10.0.0.5", "pi.local", "fl.example.org", "[fd00::5]", "[::1]", "a_b"])
ports = st.none() | st.integers(1, 65535)
paths = st.lists(st.text(LETTERS + "_~-", min_size=1, max_size=20), max_size=3)
pins = st.lists(st.binary(max_size=8).map(pin_of_key), max_size=MOST_PINS, unique=True).map(tuple)


@st.composite
def pairings(draw: st.DrawFn) -> Pairing:
    port, path = draw(ports), "".join(f"/{segment}" for segment in draw(paths))
    url = f"https://{draw(hosts)}{'' if port is None else f':{port}'}{path}"
    return Pairing(url, draw(st.none() | keys), draw(st.none() | names), draw(pins))


@given(pairings())
def test_both_forms_are_read_as_what_was_written(pairing: Pairing) -> None:
    assert Pairing.parse(pairing.app_uri()) == pairing
    assert Pairing.parse(pairing.page_uri()) == pairing
    assert Pairing.at(pairing.app_uri()) == Pairing.at(pairing.page_uri()) == pairing
    assert pairing.url.endswith("/join") or Pairing.at(pairing.url) == Pairing(pairing.url)


def test_the_golden_file_is_what_its_script_writes() -> None:
    assert json.loads(pairing_file.text()) == GOLDEN


@pytest.mark.parametrize("case", GOLDEN["accepted"], ids=lambda case: case["name"])
def test_accepted_examples(case: dict[str, Any]) -> None:
    pairing = Pairing.parse(case["uri"])
    assert [pairing.url, pairing.key, pairing.federation, list(pairing.pins)] == [
        *(case["url"], case["key"], case["federation"], case["pins"])
    ]
    assert {"app": pairing.app_uri(), "page": pairing.page_uri()} == case["written"]


@pytest.mark.parametrize("case", GOLDEN["refused"], ids=lambda case: case["name"])
def test_refused_examples(case: dict[str, str]) -> None:
    for insecure in (False, True):
        with pytest.raises(EdgeFLError):
            Pairing.parse(case["uri"], insecure=insecure)


@pytest.mark.parametrize("case", GOLDEN["accepted_if_insecure"], ids=lambda case: case["name"])
def test_plain_http_to_another_machine_needs_an_option(case: dict[str, str]) -> None:
    with pytest.raises(EdgeFLError, match="--insecure"):
        Pairing.parse(case["uri"])
    assert Pairing.parse(case["uri"], insecure=True).url.startswith("http://")


@given(st.text() | st.text(LETTERS + "&=%#?:/.-_@").map("https://a/join#".__add__))
def test_any_text_is_read_or_refused_with_an_explanation(text: str) -> None:
    try:
        pairing = Pairing.parse(text)
    except EdgeFLError as error:
        assert error.fix  # noqa: PT017
    else:
        assert Pairing.parse(pairing.page_uri()) == pairing


def test_a_key_is_in_no_error_and_not_in_the_representation() -> None:
    assert KEY not in repr(Pairing("https://a", KEY))
    for text in (f"https://a/join#key={KEY}&pin=1", f"https://a/join#key={KEY}&key={KEY}", f"edgefl://join?key={KEY}"):
        with pytest.raises(EdgeFLError) as caught:
            Pairing.parse(text)
        assert KEY not in str(caught.value)
    for text in (f"EDGEFL://join?url=https%3A%2F%2Fa&key={KEY}", f"https://a/join?key={KEY}", f"https://{KEY}@a"):
        with pytest.raises(EdgeFLError) as caught:
            Pairing.at(text)
        assert KEY not in str(caught.value)


def test_the_longest_uri_is_read() -> None:
    start = "https://a/join#later="
    assert Pairing.parse(start + "a" * (LONGEST_URI - len(start))) == Pairing("https://a")
