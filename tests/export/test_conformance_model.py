"""The bundle of `edgefl conformance` is what the exporter makes of the network below.

`python -m tests.export.test_conformance_model` writes it anew.
"""

from pathlib import Path

import torch
from torch import nn

from edgefl.artifacts.bundle import Bundle, read_bundle, write_bundle
from export.bundle import make_bundle
from export.zoo.seeding import seeded

BUNDLE = Path(__file__).parents[2] / "edgefl" / "conformance" / "conformance_model.zip"


def network() -> nn.Module:
    """A convolution with batch norm and a hidden layer with dropout, for images of 8x8."""
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(6 * 16, 16), nn.ReLU(), nn.Dropout(0.25), nn.Linear(16, 10)),
    )


def exported() -> Bundle:
    with seeded(0):
        model = network()
    return make_bundle(model, "conformance", torch.zeros(2, 1, 8, 8))


def test_the_bundle_of_the_conformance_suite_is_up_to_date() -> None:
    assert exported().manifest.files == read_bundle(BUNDLE).manifest.files


if __name__ == "__main__":
    write_bundle(exported(), BUNDLE)
