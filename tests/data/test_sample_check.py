"""A data set beside what a federation says about its samples: it fits, or the difference is named."""

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgefl.data import Dataset, Normalisation, Samples, described_by, fitting, load, plain_sample
from edgefl.errors import DataError
from edgefl.values import RawDtype, SampleDtype, SampleKind, SampleNormalisation, SampleSpec, dumps, loads

SHAPE = (1, 4, 4)
NORMALISATION = Normalisation((0.5,), (0.25,), 255.0)
PLAIN = plain_sample(SHAPE, SampleDtype.FLOAT32, 3)


def dataset(features: Any = None, classes: int = 3, **changes: Any) -> Dataset:
    raw = np.random.default_rng(0).integers(0, 256, (12, *SHAPE)).astype(np.uint8) if features is None else features
    samples = Samples(raw, np.arange(len(raw)) % classes)
    fields: dict[str, Any] = {"normalisation": NORMALISATION if raw.dtype == np.uint8 else None} | changes
    return Dataset("mine", samples, samples, classes, **fields)


SPEC = described_by(dataset(class_names=("a", "b", "c")), PLAIN)


def npz(folder: Path, **arrays: Any) -> Dataset:
    np.savez(folder / "mine.npz", **arrays)
    return load(str(folder / "mine.npz"))


def test_a_data_set_says_what_a_sample_is() -> None:
    assert (SPEC.kind, SPEC.layout, SPEC.raw_dtype) == (SampleKind.IMAGE, "CHW", RawDtype.UINT8)
    assert SPEC.normalisation == SampleNormalisation(mean=(0.5,), std=(0.25,), scale=255)
    assert SPEC.class_names == ("a", "b", "c")
    assert SPEC.example is not None
    x, labels = dataset().batch([0])
    assert base64.b64decode(SPEC.example.x) == x.astype("<f4").tobytes()
    assert base64.b64decode(SPEC.example.raw) == dataset().train.features[0].tobytes()
    assert SPEC.example.label == labels[0]


def test_the_same_data_fits_also_after_the_description_was_sent() -> None:
    data = dataset(class_names=("a", "b", "c"))
    assert fitting(data, loads(SampleSpec, dumps(SPEC))) is data


@pytest.mark.parametrize("name", ["digits"])
def test_a_known_data_set_fits_its_own_description(name: str) -> None:
    data = load(name)
    dtype = SampleDtype.FLOAT32
    spec = described_by(data, plain_sample(data.train.features.shape[1:], dtype, data.classes))
    assert fitting(data, spec) is data


def test_a_large_sample_has_no_example() -> None:
    raw = np.zeros((2, 3, 224, 224), np.uint8)
    spec = described_by(dataset(raw), plain_sample((3, 224, 224), SampleDtype.FLOAT32, 3))
    assert spec.example is None
    assert spec.raw_dtype is RawDtype.UINT8


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (
            dataset(np.zeros((6, 3, 4, 4), np.uint8)),
            r"has the shape \(3, 4, 4\), but this federation's samples have \(1, 4, 4\) \(CHW\)",
        ),
        (dataset(classes=5), "has 5 classes, but this federation has 3"),
        (dataset(class_names=("a", "c", "b")), "class 1 of 'mine' is 'c', but in this federation it is 'b'"),
        (dataset(classes=2, class_names=("a", "b")), "names 2 classes, but this federation has 3"),
        (
            dataset(normalisation=Normalisation((0.1307,), (0.3081,))),
            "normalised with mean 0.1307, std 0.3081, scale 255, but this federation with mean 0.5, std 0.25",
        ),
        (dataset(normalisation=replace(NORMALISATION, scale=16.0)), "scale 16, but .* scale 255"),
        (dataset(np.zeros((6, *SHAPE), np.int64)), r"whole numbers \(int64\).*takes real numbers"),
        (dataset(255 * np.ones((6, *SHAPE), np.float32)), "range from 255 to 255, but this federation's.* -2 to 2"),
    ],
    ids=["shape", "classes", "order of names", "fewer names", "normalisation", "scale", "tokens", "range"],
)
def test_what_does_not_fit_is_refused_and_the_difference_named(data: Dataset, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        fitting(data, SPEC)
    assert caught.value.fix


def test_a_device_may_lack_classes() -> None:
    data = dataset(classes=2)
    assert fitting(data, SPEC) is data


def test_floats_that_were_normalised_before_are_used_as_they_are() -> None:
    data = dataset(dataset().batch(range(12))[0])
    assert fitting(data, SPEC) is data


def test_raw_bytes_of_a_file_get_the_normalisation_of_the_federation(tmp_path: Path) -> None:
    raw = np.full((10, 4, 4), 200, np.uint8)
    raw[::2] = 100
    fitted = fitting(npz(tmp_path, x=raw, y=np.arange(10) % 3), SPEC)
    assert fitted.normalisation == NORMALISATION
    assert set(np.unique(fitted.batch([0, 1, 2, 3])[0])) == set(
        NORMALISATION.apply(np.array([[100, 200]], np.uint8))[0]
    )


def test_a_file_that_says_its_normalisation_is_checked_like_a_known_data_set(tmp_path: Path) -> None:
    arrays = {"x": np.full((10, 4, 4), 200, np.uint8), "y": np.arange(10) % 3}
    right = npz(tmp_path, **arrays, mean=0.5, std=[0.25])
    assert fitting(right, SPEC) is right
    with pytest.raises(DataError, match=r"mean 0\.4, std 0\.25"):
        fitting(npz(tmp_path, **arrays, mean=[0.4], std=[0.25]), SPEC)


@pytest.mark.parametrize("more", [{"mean": 0.5}, {"mean": "x", "std": 1.0}, {"scale": 2.0}, {"mean": 0, "std": 0}])
def test_half_a_normalisation_in_a_file_is_refused(tmp_path: Path, more: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        npz(tmp_path, x=np.full((10, 4, 4), 200, np.uint8), y=np.arange(10) % 3, **more)


def test_raw_bytes_do_not_fit_a_federation_without_normalisation(tmp_path: Path) -> None:
    spec = replace(PLAIN, raw_dtype=RawDtype.FLOAT32)
    with pytest.raises(DataError, match=r"raw bytes \(uint8\), but this federation trains on float32 numbers"):
        fitting(npz(tmp_path, x=np.full((10, 4, 4), 200, np.uint8), y=np.arange(10) % 3), spec)


def test_raw_bytes_are_only_converted_for_a_federation_that_uses_them_as_they_are(tmp_path: Path) -> None:
    fitted = fitting(
        npz(tmp_path, x=np.full((10, 4, 4), 200, np.uint8), y=np.arange(10) % 3),
        replace(PLAIN, raw_dtype=RawDtype.UINT8),
    )
    x = fitted.batch([0])[0]
    assert x.dtype == np.float32
    assert set(x.ravel().tolist()) == {200.0}


def test_without_knowledge_of_raw_samples_every_normalisation_is_taken() -> None:
    data = dataset(normalisation=Normalisation((0.1,), (0.7,)))
    assert fitting(data, PLAIN) is data


def test_tokens_fit_tokens() -> None:
    tokens = dataset(np.zeros((6, 8), np.int64))
    spec = described_by(tokens, plain_sample((8,), SampleDtype.INT64, 3))
    assert (spec.kind, spec.normalisation) == (SampleKind.TOKENS, None)
    assert fitting(tokens, spec) is tokens
