"""Runs side by side, with numbers computed by hand."""

from dataclasses import replace

import pytest

from edgefl.federation import EvaluationSettings, SelectionSettings, StrategyChoice
from edgefl.report import comparison_of
from edgefl.simulation import DeviceClass
from tests.report.runs import PHONE, PI, asked, tiny_run


def test_differences_are_points_of_shares_and_ratios_of_amounts() -> None:
    first = tiny_run()
    assert first.summary is not None
    better = replace(first.summary, accuracy=0.75, up_bytes=first.summary.up_bytes // 2, joules=None)
    one, other = comparison_of([first, replace(first, summary=better)]).rows
    assert set(one.differences.values()) == {0.0}
    assert other.differences["accuracy"] == pytest.approx(0.05)
    assert other.differences["up_bytes"] == -0.5
    assert other.differences["joules"] is None


def test_only_what_was_asked_differently_is_listed() -> None:
    first = tiny_run()
    second = asked(
        first,
        federation=replace(
            first.request.federation,
            seed=7,
            strategy=StrategyChoice(name="hermes", settings={"kept_target": 0.3}),
        ),
    )
    rows = comparison_of([first, second]).rows
    assert rows[0].asked == {
        "strategy": "fedavg",
        "settings.learning_rate": 0.1,
        "federation.seed": "0",
        "settings.kept_target": "not set",
    }
    assert rows[1].asked == {
        "strategy": "hermes",
        "settings.learning_rate": "not set",
        "federation.seed": "7",
        "settings.kept_target": 0.3,
    }
    assert comparison_of([first, first]).rows[1].asked == {}


def test_fleets_are_compared_class_by_class() -> None:
    first = tiny_run()
    flaky = asked(first, classes=(replace(PI, fails=0.1), replace(PHONE, fails=0.1)))
    assert comparison_of([first, flaky]).rows[1].asked == {"classes.every.fails": 0.1}
    one_flaky = asked(first, classes=(replace(PI, fails=0.1), PHONE))
    assert comparison_of([first, one_flaky]).rows[1].asked == {"classes.pi4.fails": 0.1}
    other = asked(first, classes=(DeviceClass(name="pi5", speed=2.5),))
    assert comparison_of([first, other]).rows[1].asked == {"fleet": "pi5:1"}


def test_runs_of_one_name_are_told_apart() -> None:
    runs = [tiny_run(path="a/run"), tiny_run(path="b/run"), tiny_run(path="b/run"), tiny_run(path="c/other")]
    assert [row.name for row in comparison_of(runs).rows] == ["a/run", "b/run", "b/run (3)", "other"]


@pytest.mark.parametrize("changes", [{"data": "mnist"}, {"test_samples": 50}, {"folder": "elsewhere"}])
def test_different_test_samples_are_warned_of(changes: dict[str, object]) -> None:
    first = tiny_run()
    (warning,) = comparison_of([first, asked(first, **changes)]).warnings
    assert "evaluated on different test samples" in warning
    fewer = replace(first.request.federation, selection=SelectionSettings(devices=2))
    assert not comparison_of([first, asked(first, federation=fewer)]).warnings


def test_a_run_under_way_is_warned_of_and_compared_as_far_as_it_came() -> None:
    compared = comparison_of([tiny_run(), tiny_run(rounds=1, done=False, path="runs/half")])
    assert compared.warnings == ("half is not finished: its figures cover 1 of 3 rounds.",)
    row = compared.rows[1]
    assert (row.finished, row.figures.accuracy) == (False, 0.3)
    assert row.differences["up_bytes"] == pytest.approx(-2 / 3)


def test_settings_of_the_federation_keep_their_short_names() -> None:
    told = replace(tiny_run().request.federation, evaluation=EvaluationSettings(data="test"))
    first = asked(tiny_run(), federation=told)
    changed = replace(
        told,
        rounds=replace(told.rounds, count=5, deadline=30.0),
        selection=SelectionSettings(devices=1),
        round_share=0.25,
        evaluation=EvaluationSettings(data="test", every=5),
    )
    asked_differently = comparison_of([first, asked(first, federation=changed)]).rows[1].asked
    assert asked_differently == {
        "federation.rounds": 5,
        "federation.deadline": 30.0,
        "federation.per_round": 1,
        "federation.evaluate_every": 0,
        "federation.deadline_share": 0.25,
    }
