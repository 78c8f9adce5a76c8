"""Every answer that is no success has one form, whatever went wrong and where."""

import socket

import pytest

from coordinator.errors import CoordinatorError, DatabaseUnavailableError, ErrorReason
from coordinator.http.error_handlers import HttpError, as_http_error
from edgefl.errors import EdgeFLError, MaskError, MissingDependencyError, SchemaError, WireFormatError
from edgefl.values import FieldError
from tests.coordinator.http.site import Site


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/v1", 404),
        ("GET", "/v1/federations/", 404),
        ("GET", "/docs", 404),
        ("PATCH", "/v1/federations", 405),
        ("DELETE", "/healthz", 405),
        ("GET", "/v1/federations/nobody", 404),
        ("GET", "/v1/federations/no%00body", 422),
        ("GET", "/v1/federations/digits/rounds/x", 422),
        ("GET", "/v1/federations/digits/rounds/99999999999", 422),
        ("GET", "/v1/federations/digits/rounds/7", 404),
        ("GET", "/v1/federations/digits/tasks?round=-1", 422),
        ("GET", "/v1/federations/digits/telemetry?format=xlsx", 422),
        ("GET", "/v1/federations/digits/devices/nobody/model", 404),
        ("DELETE", "/v1/federations/digits/devices/nobody", 404),
        ("DELETE", "/v1/federations/digits/keys/none", 404),
        ("POST", "/v1/federations/nobody/start", 404),
        ("POST", "/v1/federations/digits/resume", 200),
    ],
)
def test_a_mistake_gets_a_problem_and_a_fix(site: Site, method: str, path: str, status: int) -> None:
    answer = site.admin.request(method, path)
    assert answer.status_code == status, answer.text
    if status >= 400:
        assert answer.headers["Content-Type"] == "application/json"
        error = answer.json()["error"]
        assert set(error) == {"problem", "fix"}
        assert all(error.values())


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'"text"', b"\xff", b'{"settings": {}}', b'{"label": 7}', b'{"x": 1}', b"null"]
)
def test_a_wrong_body_of_an_operator_gets_a_problem_and_a_fix(site: Site, body: bytes) -> None:
    for path in ("/v1/federations", "/v1/federations/digits/keys"):
        answer = site.admin.post(path, content=body)
        assert answer.status_code in (400, 422)
        assert answer.json()["error"]["fix"]


def test_a_bug_is_a_500_without_a_traceback_and_is_logged_with_one(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(federation: str) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(site.context.store.federations, "get", broken)
    answer = site.admin.get("/v1/federations/digits")
    assert answer.status_code == 500
    assert "secret detail" not in answer.text
    assert "ZeroDivision" not in answer.text
    assert answer.json()["error"]["fix"]
    (record,) = [record for record in caplog.records if record.exc_info]
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


def test_what_is_no_http_gets_the_same_form(site: Site) -> None:
    host, port = site.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"\x16\x03\x01 this is TLS\r\n\r\n")
        answer = b""
        while piece := connection.recv(4096):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 400")
    assert b'{"error": {"problem": "this is not an HTTP request"' in answer


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (SchemaError("x", fix="y"), 400),
        (FieldError("is x", fix="y"), 422),
        (WireFormatError("x", fix="y"), 422),
        (MaskError("x", fix="y"), 422),
        (MissingDependencyError("pyarrow", action="This", extra="parquet"), 501),
        (EdgeFLError("x", fix="y"), 500),
        (DatabaseUnavailableError("x", fix="y"), 503),
        (HttpError(409, "x", fix="y"), 409),
        (CoordinatorError(ErrorReason.NOT_FOUND, "x", fix="y"), 404),
        (CoordinatorError(ErrorReason.CONFLICT, "x", fix="y"), 409),
        (CoordinatorError(ErrorReason.TOO_LARGE, "x", fix="y"), 413),
        (CoordinatorError(ErrorReason.UNAVAILABLE, "x", fix="y"), 503),
        (KeyError("x"), 500),
    ],
)
def test_each_kind_of_error_has_its_status(error: Exception, status: int) -> None:
    assert as_http_error(error).status == status


def test_every_reason_has_a_status_and_may_say_when_to_come_again() -> None:
    for reason in ErrorReason:
        assert as_http_error(CoordinatorError(reason, "x", fix="y")).headers == {}
        late = CoordinatorError(reason, "x", fix="y", retry_seconds=4.6)
        assert as_http_error(late).headers == {"Retry-After": "5"}


def test_what_the_database_says_is_for_the_log_alone() -> None:
    problem = as_http_error(DatabaseUnavailableError("no route to db.internal", fix="Start it."))
    assert "db.internal" not in str(problem)
    assert problem.headers["Retry-After"]
