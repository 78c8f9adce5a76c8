"""Converts an inference model to 8-bit integers, by onnxruntime's static quantisation.

The ranges of activations are those seen on a few dozen real samples. Weights have a range for every output channel.
Convolutions and linear layers are quantised, and what is between them; everything else stays in float32. Needs the
packages onnx and onnxruntime.
"""

import contextlib
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy.typing as npt
import onnx

from edgefl.errors import DataError, MissingDependencyError

__all__ = ["quantise"]

_QUANTISED = ["Conv", "Gemm", "MatMul", "Relu", "Clip", "MaxPool", "Add", "Reshape"]
_SAMPLES_AT_ONCE = 16


def quantise(model: bytes, samples: npt.NDArray[Any]) -> bytes:
    """Return an inference model (weights inside, one input `x`) with 8-bit layers, calibrated on these samples."""
    if not len(samples):
        raise DataError("there are no samples to calibrate with", fix="Give a few dozen real samples.")
    try:
        from onnxruntime import quantization
    except ImportError as error:
        missing = error.name or "onnxruntime"
        raise MissingDependencyError(missing, action="Quantising a model", extra="device") from None

    class Samples(quantization.CalibrationDataReader):  # type: ignore[misc]
        """Batches of samples, as the calibration reads them."""

        def __init__(self) -> None:
            self.rest = [samples[at : at + _SAMPLES_AT_ONCE] for at in range(0, len(samples), _SAMPLES_AT_ONCE)]

        def get_next(self) -> dict[str, npt.NDArray[Any]] | None:
            return {"x": self.rest.pop(0)} if self.rest else None

    with tempfile.TemporaryDirectory() as folder, _quiet():
        path = Path(folder) / "int8.onnx"
        quantization.quantize_static(
            onnx.load_from_string(model),
            str(path),
            Samples(),
            quant_format=quantization.QuantFormat.QDQ,
            # ARM's kernels need signed numbers. Sums of full 8-bit products overflow on x86 without VNNI, with
            # errors of 19% instead of 1%; so weights use seven bits: the file must be right wherever it runs.
            activation_type=quantization.QuantType.QInt8,
            weight_type=quantization.QuantType.QInt8,
            reduce_range=True,
            per_channel=True,
            op_types_to_quantize=_QUANTISED,
        )
        return path.read_bytes()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the quantiser's advice, which has been followed already."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.setLevel(level)
