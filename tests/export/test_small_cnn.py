"""The bundle that device tests train is what the exporter makes of the network below.

`python -m tests.export.test_small_cnn` writes it anew.
"""

import torch
from torch import nn

from edgefl.artifacts.bundle import Bundle, read_bundle, write_bundle
from export.bundle import make_bundle
from export.zoo.seeding import seeded
from tests.device_runtime.federation import BUNDLE


def small_cnn() -> nn.Module:
    """Two convolutions with batch norm, for 8x8 digits."""
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 4, 10)),
    )


def exported() -> Bundle:
    with seeded(0):
        model = small_cnn()
    return make_bundle(model, "small_cnn", torch.zeros(2, 1, 8, 8))


def test_the_bundle_of_the_device_tests_is_up_to_date() -> None:
    assert exported().manifest.files == read_bundle(BUNDLE).manifest.files


if __name__ == "__main__":
    write_bundle(exported(), BUNDLE)
