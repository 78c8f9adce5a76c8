"""A data set beside the description of a federation's samples: what it says about them, and whether it fits.

The exporter and the coordinator describe samples with a data set (`described_by`); a device checks its own data with
`fitting` before it joins. A description comes from a stranger: it is bounded, and nothing in it is executed.
"""

import base64
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgefl.data.dataset import Dataset
from edgefl.data.normalisation import Normalisation
from edgefl.errors import DataError
from edgefl.values import (
    RawDtype,
    SampleDtype,
    SampleExample,
    SampleKind,
    SampleNormalisation,
    SampleSpec,
)
from edgefl.values.sample_spec import MOST_EXAMPLE_BYTES, names_fit

__all__ = ["described_by", "fitting", "plain_sample"]

_TOLERANCE = 1e-6
"""Relative difference up to which two normalisations count as equal: one of them may have been written as text."""
_ONLY_CONVERTED = Normalisation((0.0,), (1.0,), 1.0)
_RAW = {str(dtype) for dtype in RawDtype}


def plain_sample(shape: tuple[int, ...], dtype: SampleDtype, classes: int) -> SampleSpec:
    """Return what a model alone says about its samples."""
    kind, layout = SampleKind.OTHER, None
    if dtype is SampleDtype.INT64:
        kind = SampleKind.TOKENS
    elif len(shape) == 3:
        kind, layout = SampleKind.IMAGE, "CHW"
    elif len(shape) == 1:
        kind = SampleKind.VECTOR
    return SampleSpec(shape=shape, dtype=dtype, kind=kind, layout=layout, classes=classes)


def described_by(dataset: Dataset, spec: SampleSpec) -> SampleSpec:
    """Return a description with the normalisation, the class names and an example of a data set that fits it."""
    _check_shape(dataset, spec)
    _check_dtype(dataset, spec)
    _check_classes(dataset, spec)
    raw = str(dataset.train.features.dtype)
    names = dataset.class_names
    if names is None or len(names) != spec.classes or not names_fit(names):
        names = spec.class_names
    known = replace(
        spec,
        raw_dtype=RawDtype(raw) if raw in _RAW else None,
        normalisation=_spec_of(dataset.normalisation),
        class_names=names,
        example=None,
    )
    return replace(known, example=None if known.raw_dtype is None else _example(dataset))


def fitting(dataset: Dataset, spec: SampleSpec) -> Dataset:
    """Return a device's data in the form that a federation describes. Raise a `DataError` that names the difference.

    Bytes whose file says nothing about their normalisation get the federation's.
    """
    _check_shape(dataset, spec)
    _check_classes(dataset, spec)
    if spec.raw_dtype is None and spec.normalisation is None:  # the federation does not know
        _check_dtype(dataset, spec)
        return dataset
    wanted = None if spec.normalisation is None else _normalisation_of(spec.normalisation)
    if dataset.normalisation_is_own or dataset.normalisation is None:
        _check_dtype(dataset, spec)
        _check_normalisation(dataset, wanted, spec)
        return dataset
    if wanted is None and spec.raw_dtype is RawDtype.UINT8 and spec.dtype is SampleDtype.FLOAT32:
        wanted = _ONLY_CONVERTED
    if wanted is None:
        raise DataError(
            f"the samples of {dataset.name!r} are raw bytes ({dataset.train.features.dtype}), but this federation "
            f"trains on {spec.raw_dtype} numbers without a normalisation",
            fix="Give the data in the federation's form; `edgefl data` shows what a file holds.",
        )
    fitted = replace(dataset, normalisation=wanted)
    _check_dtype(fitted, spec)
    return fitted


def _check_shape(dataset: Dataset, spec: SampleSpec) -> None:
    found = tuple(dataset.train.features.shape[1:])
    if found != tuple(spec.shape):
        raise DataError(
            f"a sample of {dataset.name!r} has the shape {_sizes(found)}, but this federation's samples have "
            f"{_sizes(spec.shape)}{'' if spec.layout is None else f' ({spec.layout})'}",
            fix="Give data of that shape, or join the federation that this data is for.",
        )


def _check_dtype(dataset: Dataset, spec: SampleSpec) -> None:
    is_float = dataset.normalisation is not None or dataset.train.features.dtype.kind == "f"
    if is_float != (spec.dtype is SampleDtype.FLOAT32):
        kinds = {True: "real numbers (float32)", False: "whole numbers (int64), such as tokens"}
        raise DataError(
            f"{dataset.name!r} gives the model {kinds[is_float]}, but this federation's model takes "
            f"{kinds[not is_float]}",
            fix="Give data of that type, or join the federation that this data is for.",
        )


def _check_classes(dataset: Dataset, spec: SampleSpec) -> None:
    if dataset.classes > spec.classes:
        raise DataError(
            f"{dataset.name!r} has {dataset.classes} classes, but this federation has {spec.classes}",
            fix=f"Number the labels from 0 to {spec.classes - 1}, as the federation does.",
        )
    ours, theirs = dataset.class_names, spec.class_names
    if ours is None or theirs is None or tuple(ours) == tuple(theirs):
        return
    if len(ours) < len(theirs):
        problem = f"{dataset.name!r} names {len(ours)} classes, but this federation has {len(theirs)}"
    else:
        at = next(at for at, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1])
        problem = f"class {at} of {dataset.name!r} is {ours[at][:60]!r}, but in this federation it is {theirs[at]!r}"
    raise DataError(problem, fix="Number the labels as the federation does: equal classes need equal numbers.")


def _check_normalisation(dataset: Dataset, wanted: Normalisation | None, spec: SampleSpec) -> None:
    found = dataset.normalisation
    if found is None or wanted is None:
        if found is not None:
            raise _other_normalisation(dataset, wanted)
        if wanted is not None and spec.raw_dtype is RawDtype.UINT8:
            _check_range(dataset, wanted)
        return
    ours, theirs = (np.array([*one.mean, *one.std, one.scale]) for one in (found, wanted))
    if ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=_TOLERANCE, atol=_TOLERANCE):
        raise _other_normalisation(dataset, wanted)


def _check_range(dataset: Dataset, wanted: Normalisation) -> None:
    """Refuse floats that cannot be normalised bytes, such as bytes that were only converted to float."""
    mean, std = np.array(wanted.mean), np.array(wanted.std)
    low, high = float(np.min(-mean / std)), float(np.max((255 / wanted.scale - mean) / std))
    features = dataset.train.features
    least, most = float(features.min()), float(features.max())
    slack = 0.5 * (high - low)
    if least < low - slack or most > high + slack:
        raise DataError(
            f"the samples of {dataset.name!r} range from {least:.6g} to {most:.6g}, but this federation's, which are "
            f"bytes normalised with {_text(wanted)}, range from {low:.6g} to {high:.6g}",
            fix="Give the bytes themselves (uint8), which get the federation's normalisation, or normalise them so.",
        )


def _other_normalisation(dataset: Dataset, wanted: Normalisation | None) -> DataError:
    return DataError(
        f"{dataset.name!r} is normalised with {_text(dataset.normalisation)}, but this federation with {_text(wanted)}",
        fix="Give data with the federation's normalisation, or raw bytes (uint8), which get it.",
    )


def _text(one: Normalisation | None) -> str:
    if one is None:
        return "nothing: its numbers are used unchanged"
    return f"mean {_numbers(one.mean)}, std {_numbers(one.std)}, scale {one.scale:.6g}"


def _numbers(values: tuple[float, ...]) -> str:
    shown = ", ".join(f"{value:.6g}" for value in values[:4])
    return f"({shown}, ...)" if len(values) > 4 else f"({shown})" if len(values) > 1 else shown


def _sizes(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def _example(dataset: Dataset) -> SampleExample | None:
    raw = dataset.train.features[:1]
    x, labels = dataset.batch([0])
    if max(raw.nbytes, x.nbytes) > MOST_EXAMPLE_BYTES:
        return None
    return SampleExample(raw=_base64(raw), label=int(labels[0]), x=_base64(x))


def _base64(array: NDArray[Any]) -> str:
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    return base64.b64encode(little.tobytes()).decode()


def _spec_of(one: Normalisation | None) -> SampleNormalisation | None:
    return None if one is None else SampleNormalisation(mean=one.mean, std=one.std, scale=one.scale)


def _normalisation_of(one: SampleNormalisation) -> Normalisation:
    return Normalisation(tuple(one.mean), tuple(one.std), one.scale)
