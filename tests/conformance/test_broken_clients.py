"""Clients that are broken on purpose, each caught by a row of the suite: one that passes everybody is worth nothing."""

from dataclasses import replace

import pytest

from edgefl.conformance.catalogue import chosen_rows
from edgefl.conformance.situation import RowVerdict
from edgefl.conformance.suite import SuiteSettings, run_suite
from tests.conformance import broken_network as network
from tests.conformance import broken_training as training
from tests.conformance.agent_client import AgentClient

SETTINGS = SuiteSettings(patience=10.0, least_backoff=0.04, quiet_seconds=0.5)
SILENT = replace(SETTINGS, patience=2.0)
"""For a client that is caught because it says nothing any more."""

CAUGHT: list[tuple[type[AgentClient], str, str]] = [
    (network.SendsTheKeyAgain, "enrolment/key,polling/gzip", "the key is in the address"),
    (network.ForgetsItsToken, "enrolment/token,polling/clock-skew", "does not have the device's token"),
    (network.ForgetsItsEnrolmentId, "enrolment/lost-answer", "with another enrolment_id"),
    (network.KeepsEnrolling, "enrolment/rejected", "the same enrolment 2 more times"),
    (network.InsistsOnItsSamples, "enrolment/older-coordinator", "did not enrol without its number of samples"),
    (network.SaysNothingOfItself, "enrolment/capabilities", "did not say what it can run"),
    (network.NeverComparesItsData, "sample/mismatch", "enrolled nevertheless"),
    (network.IgnoresRetryAfter, "polling/retry-after", "1.00 s is the least"),
    (network.IgnoresRetryAfter, "uploads/no-room", "1.00 s is the least"),
    (network.NeverBacksOff, "polling/server-error", "0.04 s is the least"),
    (network.BelievesGiantRetryAfter, "hostile/retry-after", "nothing came"),
    (network.PollsAllTheTime, "polling/retry-seconds", "1.00 s is the least"),
    (network.WaitsTooLong, "polling/wait,polling/gzip", "wait is '5000'"),
    (network.RefusesUnknownFields, "polling/unknown-fields", "did nothing with it"),
    (network.FollowsRedirects, "polling/redirect", "to another origin"),
    (network.FollowsRedirects, "uploads/redirect", "to another origin"),
    (network.BelievesProxies, "uploads/proxy-404", "did not send the result again"),
    (network.BelievesProxies, "uploads/server-error", "did not send the result again"),
    (network.BelievesProxies, "polling/proxy-401", "the client ended"),
    (network.BelievesCaptivePortals, "uploads/captive-portal", "other bytes"),
    (network.GoesOnAfterRevocation, "ending/revoked", "used the revoked token"),
    (network.StopsAtNothing, "ending/finished", "more times"),
    (network.DiesOfDeepJson, "hostile/nested", "the client ended"),
    (network.ReadsWhateverComes, "hostile/large-answer", "MiB of it"),
    (network.NeverChecksDigests, "downloads/corrupt", "did not download it again"),
    (network.NeverChecksDigests, "downloads/captive-portal", "did not download it again"),
    (network.DownloadsEverythingAgain, "downloads/cached", "artifacts again"),
    (network.NeverResumes, "downloads/resume", "did not resume with a Range"),
    (network.NeverGivesUpADownload, "downloads/hopeless", "downloaded it 5 times"),
    (network.SendsRejectedResultsAgain, "uploads/invalid", "sent the result"),
    (network.SendsRejectedResultsAgain, "uploads/conflict", "sent the result"),
    (network.SendsLateResultsAgain, "uploads/late", "sent the result"),
    (network.ChangesItsResult, "uploads/lost-answer", "sent other bytes"),
    (network.NeverSendsUncompressed, "uploads/uncompressed", "did not send it uncompressed"),
    (network.ShufflesUnasked, "uploads/form,polling/gzip", "which was not offered"),
    (network.SendsJsonForBodies, "uploads/form,polling/gzip", "as 'application/octet-stream'"),
    (network.CallsEverythingBroken, "refusals/unknown-rule", "its reason is 'broken'"),
    (network.CallsEverythingBroken, "refusals/diverged", "its reason is 'broken'"),
    (network.TrainsAfterTheDeadline, "refusals/deadline", "after the deadline"),
    (training.DropsMomentum, "training/momentum", "away from the right values"),
    (training.ForgetsClipping, "training/clipping", "away from the right values"),
    (training.ForgetsTheSchedule, "training/options", "away from the right values"),
    (training.IgnoresUnknownSettings, "refusals/unknown-setting", "sent a result"),
    (training.SwapsMasks, "training/masked-noise", "bits"),
    (training.SwapsMasks, "training/signed-noise", "bits"),
    (training.ReportsNoSensitivities, "training/sensitivity", "lacks the tensor 'sensitivity/0/0.weight'"),
    (training.ReportsRootsOfSums, "training/sensitivity", "away from the right values"),
    (training.ReportsRootsOfSums, "training/noise-sensitivity", "away from the right values"),
    (training.ForgetsTheClipOfFeatures, "training/feature-sums", "away from the right values"),
    (training.ForgetsTheClipOfFeatures, "training/head-gradients", "away from the right values"),
    (training.SendsTheLowerTriangle, "training/feature-sums", "'sums/gram' is"),
    (training.KeepsTheHeadItDownloaded, "training/head-gradients", "away from the right values"),
    (training.IgnoresMostSteps, "training/most-steps", "steps is 16, not 7"),
    (training.StopsAtTheEndOfAnEpoch, "training/most-steps", "steps is 4, not 7"),
    (training.RoundsItsSeed, "training/large-seed", "away from the right values"),
    (training.CountsStepsWrongly, "training/sgd", "steps is 4, not 3"),
    (training.ClaimsLongRounds, "training/sgd", "round_seconds is 3600.0"),
    (training.CountsNoTraffic, "training/sgd", "down_bytes is 0"),
    (training.SendsFrozenTensors, "training/frozen", "which is not to be sent"),
    (training.SendsFrozenTensors, "training/fine-tune", "which is not to be sent"),
    (training.KeepsStatistics, "training/sgd", "lacks the tensor '1.running_mean'"),
    (training.SendsItsOldWeights, "training/sgd", "away from the right values"),
    (training.DrawsOtherBatches, "training/sgd", "away from the right values"),
    (training.NeverShufflesAgain, "training/epochs", "away from the right values"),
    (training.DropsOutTheSame, "training/sgd", "away from the right values"),
    (training.KeepsALastBatchOfOne, "training/last-of-one", "steps is 12, not 10"),
    (training.DropsShortBatches, "training/sgd", "steps is 2, not 3"),
    (training.HoldsNothingOut, "training/sgd", "samples is 90, not 81"),
]
"""A broken client, the row that catches it, and what it says; further rows give a watch something to see."""


@pytest.mark.parametrize(
    ("broken", "rows", "says"),
    CAUGHT,
    ids=[f"{broken.__name__} {rows.partition(',')[0]}" for broken, rows, _ in CAUGHT],
)
def test_a_broken_client_is_caught(broken: type[AgentClient], rows: str, says: str) -> None:
    outcomes = run_suite(chosen_rows(rows.split(",")), broken, SILENT if says.startswith("nothing came") else SETTINGS)
    found = {outcome.row.name: outcome for outcome in outcomes}
    caught = found[rows.partition(",")[0]]
    assert caught.verdict is RowVerdict.WRONG, caught
    assert says in caught.did


def test_an_older_client_is_not_asked_for_rules_and_settings_that_it_does_not_name() -> None:
    added = ["sensitivity", "noise-sensitivity", "feature-sums", "head-gradients"]
    rows = chosen_rows(["training/sgd", *(f"training/{name}" for name in added)])
    outcomes = run_suite(rows, training.WithoutAddedSettings, SETTINGS)
    assert {outcome.row.name: outcome.verdict for outcome in outcomes} == {
        "training/sgd": RowVerdict.RIGHT,
        **{f"training/{name}": RowVerdict.NOT_ASKED for name in added},
    }
