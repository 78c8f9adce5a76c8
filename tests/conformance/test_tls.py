"""The suite over TLS: connections are cut as without it, and a client that trusts any key is caught."""

import ssl
from typing import Any

from device_runtime.agent.transport import HttpTransport
from edgefl.conformance.catalogue import chosen_rows
from edgefl.conformance.director import RowOutcome
from edgefl.conformance.situation import RowVerdict
from edgefl.conformance.suite import SuiteSettings, run_suite
from tests.conformance.agent_client import AgentClient

SETTINGS = SuiteSettings(patience=5.0, least_backoff=0.04, quiet_seconds=0.5, has_tls=True)
ROWS = "pairing,enrolment/lost-answer,polling/dropped,downloads/resume,uploads/half-a-request,uploads/redirect"


class TrustsAnybody(AgentClient):
    class transport(HttpTransport):  # noqa: N801
        def __init__(self, url: str, **options: Any) -> None:
            anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
            HttpTransport.__init__(self, url, **(options | {"tls": anybody}))


def outcomes_of(client: type[AgentClient], rows: str) -> list[RowOutcome]:
    return run_suite(chosen_rows(rows.split(",")), client, SETTINGS)


def test_the_agent_does_right_over_tls() -> None:
    assert [outcome for outcome in outcomes_of(AgentClient, ROWS) if outcome.verdict is not RowVerdict.RIGHT] == []


def test_a_client_that_trusts_any_key_is_caught() -> None:
    (outcome,) = outcomes_of(TrustsAnybody, "pairing/other-key")
    assert outcome.verdict is RowVerdict.WRONG
    assert "another key" in outcome.did


def test_rows_that_need_tls_are_not_asked_without_it() -> None:
    settings = SuiteSettings(patience=5.0, quiet_seconds=0.5)
    outcomes = run_suite(chosen_rows(["pairing"]), AgentClient, settings)
    assert {outcome.verdict for outcome in outcomes} == {RowVerdict.NOT_ASKED}
