"""Charts of a run over its rounds: the global model, the devices' own models, and the cost of each round."""

from collections.abc import Sequence

from edgefl.charts.curves import (
    accuracy_curve,
    energy_curve,
    fates_chart,
    loss_curve,
    own_accuracy_curve,
    quartiles,
    spread_of,
    time_curve,
    traffic_curve,
    training_loss_curve,
)
from edgefl.charts.figure import Figure
from edgefl.simulation.results import Fate, RoundResult

__all__ = ["curves"]

_TESTED_ON = "the published test samples"


def curves(rounds: Sequence[RoundResult]) -> tuple[Figure, ...]:
    """Return every chart that has data."""
    count, places = len(rounds), [result.number + 1 for result in rounds]
    scored = [(result.number + 1, result.score) for result in rounds if result.score is not None]
    own = [(result.number + 1, [one.own_accuracy for one in result.devices]) for result in rounds]
    losses = [(result.number + 1, [one.loss for one in result.devices if one.steps]) for result in rounds]
    middle = [
        quartiles([one.simulated_seconds for one in result.devices])[1] if result.devices else None for result in rounds
    ]
    figures = (
        accuracy_curve(
            [(place, score.accuracy) for place, score in scored],
            rounds=count,
            on=_TESTED_ON,
            judged=scored[-1][1].judged_fraction if scored else None,
        ),
        loss_curve([(place, score.loss) for place, score in scored], rounds=count, on=_TESTED_ON),
        own_accuracy_curve(spread_of(own), rounds=count),
        training_loss_curve(spread_of(losses), rounds=count),
        traffic_curve(
            places,
            [result.up_bytes for result in rounds],
            [result.down_bytes for result in rounds],
            counted="headers included, graphs not",
        ),
        energy_curve(
            [(result.number + 1, result.joules) for result in rounds if result.joules is not None],
            rounds=count,
            label="estimated",
            source="Estimated by device class.",
        ),
        time_curve(
            places,
            [result.simulated_seconds for result in rounds],
            middle,
            label="simulated",
            source="Simulated by device class.",
        ),
        fates_chart(
            places,
            {fate.value: [sum(one.fate is fate for one in result.devices) for result in rounds] for fate in Fate},
        ),
    )
    return tuple(figure for figure in figures if figure is not None)
