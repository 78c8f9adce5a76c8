"""This project's own agent passes the whole suite."""

from edgefl.conformance.catalogue import ROWS
from edgefl.conformance.situation import RowVerdict
from edgefl.conformance.suite import SuiteSettings, is_passed, run_suite
from tests.conformance.agent_client import AgentClient

NOT_ASKED = {"downloads/not-modified", "pairing/other-key", "pairing/next-key"}
"""The agent never asks whether an artifact has changed, which it never does; pins need TLS (`test_tls.py`)."""


def test_the_agent_does_right_in_every_situation() -> None:
    settings = SuiteSettings(patience=15.0, least_backoff=0.04, quiet_seconds=0.5)
    outcomes = run_suite(ROWS, AgentClient, settings)
    assert [outcome for outcome in outcomes if outcome.verdict in (RowVerdict.WRONG, RowVerdict.NOT_REACHED)] == []
    assert {outcome.row.name for outcome in outcomes if outcome.verdict is RowVerdict.NOT_ASKED} == NOT_ASKED
    assert is_passed(outcomes)
