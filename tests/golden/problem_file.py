"""problems.json: what comes back from a coordinator or a proxy, and what a client must do."""

import json
from typing import Any

from tests.golden.encoding import cases_text

__all__ = ["problems"]

_PROBLEM = json.dumps({"error": {"problem": "this device has no task 'task-7'", "fix": "Ask for the next task."}})
_MORE = json.dumps({"error": {"problem": "the queue is full", "fix": "Wait.", "later": [1]}, "trace": "x"})
_HTML = "<html><body>502 Bad Gateway</body></html>"
_NO_TASK = json.dumps({"schema": "edgefl.assignment/1", "plan": None, "retry_seconds": 12.5, "finished": False})
_OVER = json.dumps({"schema": "edgefl.assignment/1", "plan": None, "retry_seconds": 60.0, "finished": True})
_NEWER = json.dumps({**json.loads(_NO_TASK), "weather": {"sunny": True}})
_RECEIPT = json.dumps({"schema": "edgefl.receipt/1", "task_id": "task-7", "outcome": "accepted", "retry_seconds": 3.0})
_LATE = json.dumps({**json.loads(_RECEIPT), "outcome": "late", "retry_seconds": None})
_ALREADY = json.dumps({**json.loads(_RECEIPT), "outcome": "already have it"})


def problems() -> str:
    """Return the text of problems.json."""
    return cases_text([*_answers(), *_refusals(), *_strange()])


def _answers() -> list[dict[str, Any]]:
    return [
        _case("no task", "poll", 200, _NO_TASK, "done"),
        _case("a field of a newer coordinator", "poll", 200, _NEWER, "done"),
        _case("the federation is over", "poll", 200, _OVER, "done"),
        _case("accepted", "result", 200, _RECEIPT, "done"),
        _case("late", "result", 200, _LATE, "done"),
        _case("already have it", "result", 200, _ALREADY, "done"),
        _case("a refusal is acknowledged", "refusal", 200, _RECEIPT, "done"),
    ]


def _refusals() -> list[dict[str, Any]]:
    codes = {400: "drop", 404: "drop", 405: "drop", 409: "drop", 410: "drop", 413: "drop", 422: "drop"}
    codes |= {401: "stop", 403: "stop", 408: "retry", 425: "retry", 429: "retry", 500: "retry", 503: "retry"}
    return [
        *(_case(f"{code} of the coordinator", "result", code, _PROBLEM, do) for code, do in codes.items()),
        *(_case(f"{code} to a poll", "poll", code, _PROBLEM, codes[code]) for code in (401, 403, 404, 429, 503)),
        _case("404 for an artifact", "download", 404, _PROBLEM, "drop"),
        _case("more fields in a problem", "result", 422, _MORE, "drop"),
        _case("429 with Retry-After", "poll", 429, _PROBLEM, "retry", {"Retry-After": "7"}, 7),
        _case("503 with Retry-After", "result", 503, _PROBLEM, "retry", {"Retry-After": "120"}, 120),
        _case(
            "Retry-After as a date", "poll", 429, _PROBLEM, "retry", {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}
        ),
        _case("Retry-After below zero", "poll", 503, _PROBLEM, "retry", {"Retry-After": "-5"}),
        _case("Retry-After of a year", "poll", 503, _PROBLEM, "retry", {"Retry-After": "31536000"}),
    ]


def _strange() -> list[dict[str, Any]]:
    html = {"Content-Type": "text/html"}
    return [
        *(_case(f"{code} of a proxy", "result", code, _HTML, "retry", html) for code in (400, 401, 403, 404, 413, 502)),
        _case("an empty 404", "result", 404, "", "retry"),
        _case("JSON that is not a problem", "result", 422, '{"detail":"no"}', "retry"),
        _case("a problem without a fix", "result", 422, '{"error":{"problem":"no"}}', "retry"),
        _case("a problem that is not text", "result", 422, '{"error":{"problem":1,"fix":2}}', "retry"),
        _case("a list", "result", 422, "[]", "retry"),
        _case("a captive portal's page", "poll", 200, _HTML, "retry", html),
        _case("half an answer", "poll", 200, _NO_TASK[:40], "retry"),
        _case("another document", "poll", 200, _RECEIPT, "retry"),
        _case("a receipt cut off", "result", 200, _RECEIPT[:-1], "retry"),
        _case("an unknown outcome", "result", 200, _RECEIPT.replace("accepted", "maybe"), "retry"),
        _case("a redirect", "result", 302, "", "retry", {"Location": "https://example.org/"}),
        _case("a permanent redirect", "poll", 308, _PROBLEM, "retry", {"Location": "https://example.org/"}),
        _case("304 without a question", "poll", 304, "", "retry"),
    ]


def _case(
    name: str,
    request: str,
    status: int,
    body: str,
    do: str,
    headers: dict[str, str] | None = None,
    retry_after: int | None = None,
) -> dict[str, Any]:
    said = {"Content-Type": "application/json"} | (headers or {})
    return {
        "name": name,
        "request": request,
        "status": status,
        "headers": said,
        "body": body,
        "do": do,
        "retry_after": retry_after,
    }
