"""Charts as data: the right points, the right words, nothing that JSON or plotly reads as something else."""

import base64
import json
import math
from dataclasses import replace
from typing import Any

import pytest

from edgefl.charts.coverage import coverage_chart
from edgefl.charts.curves import round_axis
from edgefl.charts.figure import Figure, cells, number, plain, short
from edgefl.charts.heatmaps import MOST_DEVICES, MOST_GROUPS, channel_heatmaps, label_heatmap, layer_heatmap
from edgefl.federation.evaluation import Score
from edgefl.report.comparison_charts import comparison_charts
from edgefl.report.run_charts import curves
from tests.report.runs import HOSTILE, part, tiny_run


def by_name(figures: tuple[Figure, ...]) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures}


def bytes_of(z: Any) -> list[int]:
    return list(base64.b64decode(z["bdata"]))


def test_every_curve_has_a_point_for_each_round_that_has_a_value() -> None:
    found = by_name(curves(tiny_run().rounds))
    assert list(found) == [
        "accuracy",
        "loss",
        "own-accuracy",
        "training-loss",
        "traffic",
        "energy",
        "time",
        "fates",
    ]
    (accuracy,) = found["accuracy"].traces
    assert (accuracy["x"], accuracy["y"]) == ([1, 3], [0.3, 0.7])
    up, down = found["traffic"].traces
    assert len(up["y"]) == len(down["y"]) == 3
    assert up["y"][0] * 2**20 == pytest.approx(3000, rel=1e-5)
    (energy,) = found["energy"].traces
    assert energy["y"] == [24.0, 24.0, 24.0]
    arrived, late = found["fates"].traces
    assert (arrived["y"], late["y"]) == ([3, 2, 3], [0, 1, 0])
    assert "8 arrived, 1 late, 0 lost" in found["fates"].summary


def test_a_spread_is_the_median_between_quartiles() -> None:
    first = tiny_run(rounds=1).rounds[0]
    values = (0.2, 0.4, 1.0)
    devices = tuple(replace(one, own_accuracy=value) for one, value in zip(first.devices, values, strict=True))
    low, high, middle = by_name(curves([replace(first, devices=devices)]))["own-accuracy"].traces
    assert (low["y"], middle["y"], high["y"]) == ([pytest.approx(0.3)], [0.4], [pytest.approx(0.7)])


def test_what_is_not_known_is_not_drawn() -> None:
    first = tiny_run(rounds=1).rounds[0]
    devices = tuple(replace(one, joules=None, own_accuracy=None, steps=0) for one in first.devices)
    found = by_name(curves([replace(first, devices=devices, score=None)]))
    assert list(found) == ["traffic", "time", "fates"]
    assert curves([]) == ()


def test_a_loss_that_ran_away_is_a_gap() -> None:
    first = tiny_run(rounds=1).rounds[0]
    figure = by_name(curves([replace(first, score=Score(0.1, math.nan, 10))]))["loss"]
    assert figure.traces[0]["y"] == [None]
    json.dumps(figure.spec(), allow_nan=False)


@pytest.mark.parametrize(("rounds", "step"), [(1, 1), (10, 1), (11, 2), (100, 10), (101, 20), (1000, 100)])
def test_rounds_are_counted_in_round_numbers(rounds: int, step: int) -> None:
    assert round_axis(rounds)["dtick"] == step


def test_layers_are_drawn_by_device_in_two_colours() -> None:
    figure = layer_heatmap(tiny_run().parts)
    assert figure is not None
    trained, frozen = figure.traces
    assert trained["z"] == [[None, 50, 50], [50, 50, 50], [50, 50, 50]]
    assert frozen["z"] == [[50, None, None], [None] * 3, [None] * 3]
    assert frozen["text"][0] == ["frozen 50", "", ""]
    assert "2 of 3 devices train all 3 layers" in figure.summary
    assert [name for name, _ in figure.key] == ["trained", "frozen"]


def test_channels_are_drawn_by_group() -> None:
    first, second = channel_heatmaps(tiny_run().parts)
    assert first.title == "Channels of conv1"
    assert first.traces[0]["z"]["shape"] == "3, 4"
    assert bytes_of(first.traces[0]["z"]) == [100, 100, 0, 0] * 3
    assert second.summary == "Devices keep 4 of 8 channels; 4 are kept by all, 4 by none."


def test_neighbouring_channels_of_a_wide_group_share_a_column() -> None:
    wide = replace(part("a"), channels={"wide": "1" * 301 + "0" * 300})
    (figure,) = channel_heatmaps([wide])
    trace = figure.traces[0]
    assert trace["z"]["shape"] == "1, 201"
    shares = bytes_of(trace["z"])
    assert (shares[99], shares[100], shares[101], shares[200]) == (100, 33, 0, 0)
    assert (trace["x0"], trace["dx"]) == (1.0, 3)
    assert "A column is 3 channels" in figure.summary


def test_pictures_of_a_large_fleet_show_some_devices_and_say_so() -> None:
    names = [f"d{number}" for number in range(MOST_DEVICES + 50)]
    said = f"The first {MOST_DEVICES} of 250 devices are shown."
    labels, layers = (
        label_heatmap([(name, (1, 2)) for name in names]),
        layer_heatmap(list(map(part, names))),
    )
    (channels, _) = channel_heatmaps(list(map(part, names)))
    for figure in (labels, layers, channels):
        assert figure is not None
        assert len(figure.traces[0]["y"]) == MOST_DEVICES
        assert said in figure.summary
        assert len(figure.layout["yaxis"]["tickvals"]) <= 40
    coverage = coverage_chart(list(map(part, names)))
    assert coverage is not None
    assert coverage.traces[0]["y"] == [250, 250, 250]


def test_only_so_many_groups_are_drawn() -> None:
    many = replace(part("a"), channels={f"g{number}": "10" for number in range(MOST_GROUPS + 5)})
    assert len(channel_heatmaps([many])) == MOST_GROUPS


def test_coverage_counts_those_that_train_a_layer() -> None:
    figure = coverage_chart(tiny_run().parts)
    assert figure is not None
    trained, frozen = figure.traces
    assert (trained["y"], frozen["y"]) == ([2, 3, 3], [1, 0, 0])
    assert figure.summary == "A layer is trained by 2 to 3 of 3 devices; by the fewest: conv1."


def test_nothing_is_drawn_of_nothing() -> None:
    assert label_heatmap([]) is None
    assert layer_heatmap([]) is None
    assert coverage_chart([]) is None
    assert channel_heatmaps([]) == ()


def test_runs_lie_over_each_other_by_rounds_and_every_cost() -> None:
    found = by_name(comparison_charts([tiny_run(), tiny_run(rounds=1, done=False)], ["long", "short"]))
    assert len(found) == 15
    assert found["accuracy-energy"].traces[0]["x"] == [24.0, 72.0]
    assert found["accuracy-up"].traces[0]["x"] == [pytest.approx(3000 / 2**20, rel=1e-5), pytest.approx(9000 / 2**20)]
    over_time, over_bytes = found["accuracy-time"].traces, found["accuracy-bytes"].traces
    assert over_time[0]["x"] == [5.0, 25.0]
    assert over_bytes[0]["x"] == [pytest.approx(9000 / 2**20, rel=1e-5), pytest.approx(27000 / 2**20, rel=1e-5)]
    assert len(found["accuracy-rounds"].traces[1]["x"]) == 1
    assert found["accuracy-rounds"].summary == "Final values: long 70.0 %; short 30.0 %."


def test_texts_of_strangers_are_texts_to_plotly() -> None:
    assert plain("<b>&amp;") == "&lt;b&gt;&amp;amp;"
    assert plain("a\u202eb") == "a\\u202eb"
    assert len(short("x" * 200)) == 26
    figure = layer_heatmap([part(HOSTILE)])
    assert figure is not None
    assert "<" not in json.dumps([figure.layout, figure.traces[0]["y"]])


def test_numbers_are_those_that_json_can_hold() -> None:
    assert [number(value) for value in (1 / 3, math.inf, math.nan, None)] == [0.333333, None, None, None]
    assert cells([[0, 100]]) == {"dtype": "u1", "bdata": "AGQ=", "shape": "1, 2"}
