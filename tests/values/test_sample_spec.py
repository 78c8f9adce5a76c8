"""The description of a sample: consistent with itself, and too small to harm the device that reads it."""

import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from edgefl.errors import SchemaError
from edgefl.values import RawDtype, SampleSpec, dumps, from_json
from tests.values.samples import SAMPLE

LARGEST_REPLY = 256 * 1024


def test_the_example_follows_from_the_formula() -> None:
    assert SAMPLE.example is not None
    assert SAMPLE.normalisation is not None
    raw = np.frombuffer(base64.b64decode(SAMPLE.example.raw), np.uint8)
    how = SAMPLE.normalisation
    factor, offset = np.float32(1 / (how.scale * how.std[0])), np.float32(how.mean[0] / how.std[0])
    x = raw.astype(np.float32) * factor - offset
    assert x.astype("<f4").tobytes() == base64.b64decode(SAMPLE.example.x)


@pytest.mark.parametrize("dtype", RawDtype)
def test_item_bytes_are_numpys(dtype: RawDtype) -> None:
    assert dtype.item_bytes == np.dtype(dtype.value).itemsize


def _text(size: int) -> str:
    return base64.b64encode(bytes(size)).decode()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: data.update(shape=[]), "shape"),
        (lambda data: data.update(shape=[1] * 9), "shape"),
        (lambda data: data.update(shape=[2**20, 2**20]), "shape"),
        (lambda data: data.update(shape=[0, 4]), "shape"),
        (lambda data: data.update(classes=10**6, class_names=None), "classes"),
        (lambda data: data.update(class_names=["a"]), "class_names"),
        (lambda data: data.update(classes=20_000, class_names=["x"] * 20_000), "class_names"),
        (lambda data: data.update(classes=300, class_names=["x" * 200] * 300), "class_names"),
        (lambda data: data["normalisation"].update(mean=[0.5] * 3, std=[0.5] * 3), "normalisation"),
        (lambda data: data["normalisation"].update(mean=[]), "normalisation"),
        (lambda data: data["normalisation"].update(mean=[0.0] * 2000, std=[1.0] * 2000), "normalisation"),
        (lambda data: data["normalisation"].update(std=[0.0]), "normalisation"),
        (lambda data: data["normalisation"].update(scale=0), "normalisation"),
        (lambda data: data["normalisation"].update(std=[1e-300], scale=1e-300), "beyond float32"),
        (lambda data: data["normalisation"].update(mean=[1e308], std=[0.1]), "beyond float32"),
        (lambda data: data["example"].update(raw=_text(10**6)), "example.raw"),
        (lambda data: data["example"].update(raw=_text(3)), "example.raw"),
        (lambda data: data["example"].update(x="not base64"), "example.x"),
        (lambda data: data["example"].update(x=_text(17)), "example.x"),
        (lambda data: data["example"].update(label=3), "example.label"),
    ],
)
def test_a_description_that_contradicts_itself_or_is_too_large_is_refused(
    change: Callable[[dict[str, Any]], object], says: str
) -> None:
    data = json.loads(dumps(SAMPLE))
    change(data)
    with pytest.raises(SchemaError, match=says):
        from_json(SampleSpec, data)


def test_the_largest_description_fits_into_what_a_device_reads() -> None:
    data = json.loads(dumps(SAMPLE))
    data.update(shape=[256, 48], classes=240, class_names=['"' * 200] * 240, raw_dtype="float32", layout="\\" * 200)
    data["normalisation"] = {"mean": [-1.2345678901234567e-300] * 256, "std": [1.2345678901234567e-35] * 256}
    data["example"] = {"raw": _text(48 * 1024), "label": 1, "x": _text(48 * 1024)}
    assert len(dumps(from_json(SampleSpec, data)).encode()) < LARGEST_REPLY
