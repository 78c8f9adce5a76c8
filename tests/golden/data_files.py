"""batches.json, schedules.json and normalisation.json: what a step reads."""

import itertools
from typing import Any

import numpy as np

from device_runtime.local_data import LocalData
from edgefl.data import Dataset, Normalisation, Samples
from edgefl.local_rules import TrainingInput
from edgefl.local_rules.descent import Descent
from edgefl.masks import full_mask
from edgefl.noise import bits
from tests.golden.encoding import cases_text, json_of
from tests.golden.tiny_model import tiny_model

__all__ = ["batches", "normalisation", "schedules"]

_SEED = 2**63 + 12345


def numbered(samples: int, classes: int = 3) -> Dataset:
    """Return samples that are their own number."""
    labels = np.arange(samples) % classes
    features = np.arange(samples, dtype=np.float32).reshape(-1, 1)
    return Dataset("numbers", Samples(features, labels), Samples(features[:0], labels[:0]), classes)


def batches() -> str:
    """Return the text of batches.json."""
    cases = [
        _batches(10, 4, 2, "whole batches and a short last one"),
        _batches(9, 4, 2, "a last batch of one sample is dropped"),
        _batches(1, 4, 2, "the only sample is a batch"),
        _batches(3, 1, 1, "batches of one"),
        _batches(4, 4, 1, "one whole batch"),
        _batches(5, 4, 3, "one whole batch, a single sample dropped in each epoch"),
        _batches(10, 4, 3, "most_steps ends within the second epoch", most_steps=4),
        _batches(10, 4, 3, "most_steps beyond the end", most_steps=100),
        _batches(25, 8, 1, "validation of a half, rounded to even: 2", validation=0.1),
        _batches(35, 8, 1, "validation of a half, rounded to even: 4", validation=0.1),
        _batches(26, 8, 1, "validation of 2.6 is 3", validation=0.1),
        _batches(2, 8, 1, "one sample always remains", validation=0.9),
        _batches(10, 4, 2, "equal batches, for a program of one size", equal=True),
    ]
    return cases_text(cases)


def _batches(
    samples: int,
    size: int,
    epochs: int,
    name: str,
    *,
    validation: float = 0.0,
    most_steps: int | None = None,
    equal: bool = False,
) -> dict[str, Any]:
    data = LocalData.whole(numbered(samples), validation=validation)
    drawn = (
        {"epoch": epoch, "samples": batch.x[:, 0].astype(int).tolist(), "seed": str(batch.seed)}
        for epoch in range(epochs)
        for batch in data.epoch(_SEED, epoch, size, equal=equal)
    )
    extra = data.extra_batch(_SEED, size)
    return {
        "name": name,
        "samples": samples,
        "validation_share": validation,
        "seed": str(_SEED),
        "batch_size": size,
        "epochs": epochs,
        "most_steps": most_steps,
        "equal": equal,
        "validation": data.split.validation.tolist(),
        "train": data.split.train.tolist(),
        "steps": list(itertools.islice(drawn, most_steps)),
        "extra": {"samples": extra.x[:, 0].astype(int).tolist(), "seed": str(extra.seed)},
        "label_mask": data.label_flags(3).astype(int).tolist(),
    }


def schedules() -> str:
    """Return the text of schedules.json."""
    settings: list[dict[str, Any]] = [
        {"learning_rate": 0.1},
        {"learning_rate": 0.1, "schedule": "step_decay"},
        {"learning_rate": 0.1, "schedule": "step_decay", "decay_at": " 0.25,0.5, 0.999", "decay_factor": 0.3},
        {"learning_rate": 0.05, "schedule": "exponential", "decay_factor": 0.998},
        {"learning_rate": 0.05, "schedule": "cosine", "final_rate": 0.001},
    ]
    return cases_text(
        _rates({**chosen, "schedule_by": by}, round_, rounds, steps)
        for chosen in settings
        for by in ("round", "step")
        for round_, rounds, steps in ((0, 4, 5), (2, 4, 5), (3, 4, 5), (4, 4, 5), (37, 100, 3), (0, 1, 8))
    )


def _rates(settings: dict[str, Any], round_: int, rounds: int, steps: int) -> dict[str, Any]:
    inputs = TrainingInput(full_mask(tiny_model()), {}, 0, round=round_, rounds=rounds, steps=steps)
    rates = [Descent(**settings).rate(inputs, step) for step in range(steps)]
    where = {"round": round_, "rounds": rounds, "steps": steps}
    return {"settings": settings, **where, "rates": rates, "float32": json_of(np.array(rates, np.float32))}


def normalisation() -> str:
    """Return the text of normalisation.json."""
    every_byte = np.arange(256, dtype=np.uint8).reshape(2, 2, 8, 8)
    floats = (np.arange(24, dtype=np.float32) / np.float32(7) - np.float32(1)).reshape(2, 12)
    tokens = (bits(5, 0, 12) % np.uint64(1000)).astype(np.int64).reshape(2, 6)
    return cases_text(
        [
            _normalised("bytes, one mean", every_byte, Normalisation((0.2860,), (0.3530,))),
            _normalised("bytes, a mean per channel", every_byte, Normalisation((0.4914, 0.4465), (0.247, 0.2616))),
            _normalised("bytes, another scale", every_byte, Normalisation((0.5,), (1.0,), 1.0)),
            _normalised("floats, normalised", floats, Normalisation((0.1,), (3.0,), 1.0)),
            _normalised("floats, unchanged", floats, None),
            _normalised("tokens", tokens.astype(np.uint16), None),
        ]
    )


def _normalised(name: str, raw: Any, how: Normalisation | None) -> dict[str, Any]:
    labels = np.zeros(len(raw), np.int64)
    data = Dataset("raw", Samples(raw, labels), Samples(raw[:0], labels[:0]), 1, normalisation=how)
    said = None if how is None else {"mean": how.mean, "std": how.std, "scale": how.scale}
    return {"name": name, "normalisation": said, "raw": json_of(raw), "x": json_of(data.batch(np.arange(len(raw)))[0])}
