"""This EdgeFL draws the batches, rates and normalised samples of the golden files."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from device_runtime.local_data import LocalData
from edgefl import noise
from edgefl.data import Dataset, Normalisation, Samples
from edgefl.local_rules import TrainingInput
from edgefl.local_rules.descent import Descent
from edgefl.masks import full_mask
from tests.golden.data_files import numbered
from tests.golden.encoding import array_of, cases_in
from tests.golden.tiny_model import tiny_model

BATCHES = cases_in("batches.json")
SCHEDULES = cases_in("schedules.json")
NORMALISATION = cases_in("normalisation.json")


@pytest.mark.parametrize("case", BATCHES, ids=lambda case: case["name"])
def test_batches_hold_these_samples_in_this_order(case: dict[str, Any]) -> None:
    data = LocalData.whole(numbered(case["samples"]), validation=case["validation_share"])
    assert data.split.train.tolist() == case["train"]
    assert data.split.validation.tolist() == case["validation"]
    seed, size = int(case["seed"]), case["batch_size"]
    drawn = (
        (epoch, batch)
        for epoch in range(case["epochs"])
        for batch in data.epoch(seed, epoch, size, equal=case["equal"])
    )
    found = [
        {"epoch": epoch, "samples": batch.x[:, 0].tolist(), "seed": str(batch.seed)}
        for epoch, batch in itertools.islice(drawn, case["most_steps"])
    ]
    assert found == case["steps"]
    assert data.label_flags(3).tolist() == case["label_mask"]
    extra = data.extra_batch(seed, size)
    assert {"samples": extra.x[:, 0].tolist(), "seed": str(extra.seed)} == case["extra"]


def test_a_batch_drawn_by_hand() -> None:
    case = BATCHES[0]
    stream = noise.derive(int(case["seed"]), "order", 0)
    keys = [int(noise.bits(stream, index, 1)[0]) for index in range(10)]
    assert case["steps"][0]["samples"] == sorted(range(10), key=lambda index: keys[index])[:4]
    assert case["steps"][1]["seed"] == str(noise.derive(int(case["seed"]), "network", 0, 1))


@pytest.mark.parametrize("case", SCHEDULES, ids=lambda case: str(case["settings"].get("schedule")))
def test_learning_rates_are_these(case: dict[str, Any]) -> None:
    where = {key: case[key] for key in ("round", "rounds", "steps")}
    inputs = TrainingInput(full_mask(tiny_model()), {}, 0, **where)
    rates = [Descent(**case["settings"]).rate(inputs, step) for step in range(case["steps"])]
    assert rates == pytest.approx(case["rates"], rel=1e-15)
    assert np.array_equal(np.array(rates, np.float32), array_of(case["float32"]))


def test_rates_computed_by_hand() -> None:
    def rates(schedule: str, by: str, round_: int, steps: int) -> Any:
        (case,) = (
            case
            for case in SCHEDULES
            if (case["settings"].get("schedule"), case["settings"]["schedule_by"]) == (schedule, by)
            and "decay_at" not in case["settings"]
            and (case["round"], case["steps"]) == (round_, steps)
        )
        return case["rates"]

    assert rates("step_decay", "round", 2, 5) == pytest.approx([0.01] * 5)  # half of 4 rounds are over
    assert rates("step_decay", "step", 2, 5)[-1] == pytest.approx(0.01)  # 14 of 20 steps are over
    assert rates("exponential", "step", 37, 3)[1] == pytest.approx(0.05 * 0.998 ** (37 + 1 / 3))
    expected = 0.001 + 0.049 * 0.5 * (1 + math.cos(math.pi * 12 / 20))
    assert rates("cosine", "step", 2, 5)[2] == pytest.approx(expected)
    assert rates("cosine", "round", 4, 5) == pytest.approx([0.001] * 5)  # after the last round


@pytest.mark.parametrize("case", NORMALISATION, ids=lambda case: case["name"])
def test_raw_samples_become_these_numbers(case: dict[str, Any]) -> None:
    raw, labels = array_of(case["raw"]), np.zeros(len(array_of(case["raw"])), np.int64)
    said = case["normalisation"]
    how = None if said is None else Normalisation(tuple(said["mean"]), tuple(said["std"]), said["scale"])
    data = Dataset("raw", Samples(raw, labels), Samples(raw[:0], labels[:0]), 1, normalisation=how)
    found, expected = data.batch(np.arange(len(raw)))[0], array_of(case["x"])
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


def test_a_pixel_normalised_by_hand() -> None:
    x = array_of(NORMALISATION[1]["x"])
    factor, shift = np.float32(1 / (255 * 0.2616)), np.float32(0.4465 / 0.2616)
    assert x[1, 1, 0, 5] == np.float32(np.float32(197) * factor) - shift  # byte 3 * 64 + 5 of the second channel
