"""Makes the input of a simulation: Fashion-MNIST, whole or pooled to 8x8, and an initial model.

Where Debian's package with the images is not installed, noise of the same shapes takes their place: speeds do not
depend on it, and the accuracies then say nothing.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.peers.case import Case, write_case
from benchmarks.peers.edgefl_rounds import BUNDLE
from benchmarks.peers.torch_client import SHAPES, build, floats
from edgefl.artifacts.bundle import write_bundle
from edgefl.data import load
from edgefl.errors import DataError
from export.bundle import make_bundle
from export.zoo import block_of
from export.zoo.seeding import seeded

__all__ = ["Images", "images", "prepare"]

Images = tuple[NDArray[np.uint8], NDArray[np.int64]]
_SIDE = 28
_TESTED = 2000


def images(model: str, samples: int) -> tuple[Images, Images, str]:
    """Return training images in random order, test images, and what they are."""
    chance = np.random.default_rng(0)
    try:
        found = load("fashion-mnist")
    except DataError:
        x = chance.integers(0, 256, (samples + _TESTED, 1, _SIDE, _SIDE), dtype=np.uint8)
        y = chance.integers(0, 10, samples + _TESTED)
        train, test, name = (x[:samples], y[:samples]), (x[samples:], y[samples:]), "noise in place of Fashion-MNIST"
    else:
        order = chance.permutation(len(found.train))[:samples]
        train = found.train.features[order], found.train.labels[order]
        test, name = (found.test.features[:_TESTED], found.test.labels[:_TESTED]), "Fashion-MNIST"
    side = SHAPES[model][-1]
    if side == _SIDE:
        return _shaped(train), _shaped(test), name
    return _pooled(_shaped(train)), _pooled(_shaped(test)), f"{name} pooled to {side}x{side}"


def prepare(folder: Path, case: Case) -> tuple[Case, Images, str]:
    """Write a case with its exported model; return it, the test images, and what the images are."""
    (x, y), test, name = images(case.model, case.clients * case.samples)
    case = replace(case, mean=float(x.mean() / 255), deviation=float(x.std() / 255))
    with seeded(0):
        model = build(case.model)
    write_bundle(make_bundle(model, case.model, torch.zeros(2, *x.shape[1:]), block_of=block_of), folder / BUNDLE)
    write_case(folder, case, x, y, {name: tensor.numpy() for name, tensor in floats(model).items()})
    return case, test, name


def _shaped(given: Images) -> Images:
    x, y = given
    return x.reshape(-1, 1, _SIDE, _SIDE), y


def _pooled(given: Images) -> Images:
    """Return the means of 4x4 squares, of images with a margin of 2."""
    x, y = given
    wide = np.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2)))
    return wide.reshape(-1, 1, 8, 4, 8, 4).mean(axis=(3, 5)).astype(np.uint8), y
