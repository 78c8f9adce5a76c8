"""From a federation's settings to a strategy, and what a bad file is told."""

from typing import Any

import pytest

from edgefl.errors import SchemaError
from edgefl.local_rules import Descent
from edgefl.strategies import (
    STRATEGIES,
    AggregationMethod,
    AggregationSettings,
    FedAvg,
    Overlap,
    UpdateWeighting,
    Width,
    strategy_of,
)
from edgefl.strategies.widths import Widths
from edgefl.values import settings_from, settings_of
from edgefl.values.dataclass_fields import Record, fields_of


def test_every_strategy_is_made_without_settings_and_knows_its_name() -> None:
    for name, strategy in STRATEGIES.items():
        assert isinstance(strategy_of(name, {}), strategy)
        assert strategy.name == name


def test_settings_reach_the_strategy_and_what_is_within_it() -> None:
    found = strategy_of(
        "fedavg",
        {
            "learning_rate": 0.03,
            "clip_norm": 2,
            "width": "full",
            "average": "clipped",
            "clip_update_norm": 10,
            "overlap": "participants",
            "weighing": "equal",
            "sorting_memory": "64 MiB",
            "assumed_samples": 50,
        },
    )
    assert found == FedAvg(
        descent=Descent(learning_rate=0.03, clip_norm=2.0),
        widths=Widths(width=Width.FULL),
        averaging=AggregationSettings(
            average=AggregationMethod.CLIPPED,
            clip_update_norm=10.0,
            overlap=Overlap.PARTICIPANTS,
            weighing=UpdateWeighting.EQUAL,
            sorting_memory=2**26,
        ),
        assumed_samples=50,
    )


def test_a_strategy_is_made_again_from_its_own_settings() -> None:
    for name, strategy in STRATEGIES.items():
        made = strategy_of(name, {"learning_rate": 0.7})
        assert strategy_of(name, settings_from(made)) == made
        assert settings_from(made).keys() <= settings_of(strategy).keys()


def test_no_strategy_has_two_settings_of_one_name() -> None:
    def names(cls: type) -> list[str]:
        found: list[str] = []
        for name, field in fields_of(cls).items():
            found += names(field.shape.cls) if isinstance(field.shape, Record) else [name]
        return found

    for strategy in STRATEGIES.values():
        assert len(names(strategy)) == len(set(names(strategy))), strategy.name


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("fedavgg", {}, r"unknown strategy 'fedavgg'\. Did you mean 'fedavg'\?"),
        ("quite_another", {}, r"unknown strategy 'quite_another'\. Known: fedavg"),
        ("fedavg", {"learning_rat": 1}, r"'settings.learning_rat' is not a known field. Did you mean 'learning_rate'"),
        ("fedavg", {"learning_rate": "fast"}, r"'settings.learning_rate' must be a number above 0, got the string"),
        ("fedavg", {"width": "wide"}, r"'settings.width' must be one of 'fit', 'full', 'levels', got 'wide'"),
        ("fedavg", {"average": "medain"}, r"'settings.average' must be one of .* Did you mean 'median'\?"),
        ("fedavg", {"average": "clipped"}, r"'settings.clip_update_norm' is None, but the average is 'clipped'"),
        ("fedavg", {"clip_update_norm": 3}, r"'settings.clip_update_norm' is 3.0, but the average is 'mean'"),
        ("fedavg", {"trim": 0.5}, r"'settings.trim' must be below 0.5"),
        ("fedavg", {"averaging": "mean"}, r"'settings.averaging' is not a known field"),
        ("fedavg", {"assumed_samples": 0}, r"'settings.assumed_samples' must be a count"),
    ],
)
def test_a_bad_file_is_told_what_is_wrong(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        strategy_of(name, settings)
