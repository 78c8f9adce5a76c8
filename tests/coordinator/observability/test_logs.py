"""Logs: a line for each request, with what one needs to find it, and without anything secret."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.federations.lifecycle import new_key
from coordinator.federations.tokens import new_token
from coordinator.observability.logs import JsonLines, TextLines, configure
from coordinator.redaction import without_secrets
from edgefl.values import Enrolment
from tests.coordinator.http.site import serving
from tests.values.samples import PROFILE


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    levels = {name: logging.getLogger(name).level for name in ("", "coordinator")}
    handler = configure("json", "debug", stream)
    yield stream
    logging.getLogger().removeHandler(handler)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def test_a_request_is_one_line_with_route_status_time_and_device(log: io.StringIO, folder: Path) -> None:
    with serving(folder) as site:
        site.federation()
        answer = site.client(site.device("pi-1")).post("/v1/tasks/next?wait=0")
    (line,) = [json.loads(text) for text in log.getvalue().splitlines() if "/v1/tasks/next" in text]
    assert line["message"] == "POST /v1/tasks/next"
    assert line["status"] == 200
    assert line["device"] == "pi-1"
    assert line["ms"] > 0
    assert line["request"] == answer.headers["X-Request-Id"]
    assert line["level"] == "debug"  # every poll at the level of info would be all that one sees


def test_no_secret_reaches_the_log(log: io.StringIO, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(folder) as site:
        site.federation()
        key = new_key(site.context, "digits")[1]
        with site.agent() as agent:
            token = agent.enrol(Enrolment(enrolment_id="one", profile=PROFILE, software="edgefl 0"), key).token
            agent.token = token
            agent.poll(0)
        made = site.admin.post("/v1/federations/digits/keys", json={"label": "b"}).json()["key"]
        guess = new_token("device")
        site.client(guess).post(f"/v1/tasks/next?token={guess}")
        site.client(token).get(f"/v1/{guess}/x?key={key}")
        site.client("Bearer-of-another-form").get("/v1/federations")

        def broken(*_: object) -> None:
            raise RuntimeError(f"the header was Authorization: Bearer {token}")

        monkeypatch.setattr(site.context.store.federations, "get", broken)
        assert site.admin.get("/v1/federations/digits").status_code == 500
        secrets = [key, token, made, guess, site.admin_token, "Bearer-of-another-form"]
    text = log.getvalue()
    assert "RuntimeError" in text
    assert "(secret)" in text
    for secret in secrets:
        assert secret not in text


@pytest.mark.parametrize("form", [JsonLines(), TextLines()])
def test_an_event_is_one_line_whatever_is_in_it(form: logging.Formatter) -> None:
    record = logging.makeLogRecord(
        {"msg": "two\nlines %s", "args": ("é",), "levelname": "INFO", "federation": "digits"}
    )
    line = form.format(record)
    assert "\n" not in line
    assert "digits" in line


def test_what_looks_like_a_secret_is_taken_out() -> None:
    key = new_token("key")
    for text in (key, f"x={key}&y", "Authorization: Bearer abc", "{'authorization': 'Bearer abc'}", "bearer abc"):
        assert key not in without_secrets(text)
        assert "abc" not in without_secrets(text)
    assert without_secrets("the bearer of this file is here") != ""
    assert without_secrets("edgefl-keyboard stays") == "edgefl-keyboard stays"


def test_a_device_that_is_unknown_has_no_name_in_the_log(log: io.StringIO, folder: Path) -> None:
    with serving(folder) as site:
        site.client("nobody").post("/v1/tasks/next")
    (line,) = [json.loads(text) for text in log.getvalue().splitlines() if "/v1/tasks/next" in text]
    assert line["status"] == 401
    assert "device" not in line
