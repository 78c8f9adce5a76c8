"""The bundle behind the golden tasks is what the exporter makes of the network below.

`python -m tests.export.test_golden_model` writes it anew; then run `python -m tests.golden.make`.
"""

import torch
from torch import nn

from edgefl.artifacts.bundle import Bundle, read_bundle, write_bundle
from export.bundle import make_bundle
from export.zoo.seeding import seeded
from tests.golden.task_files import BUNDLE


def golden_model() -> nn.Module:
    """A convolution with batch norm, dropout and a linear layer, for 4x4 images of three classes."""
    return nn.Sequential(
        *(nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU()),
        *(nn.Dropout(0.25), nn.Flatten(), nn.Linear(64, 3)),
    )


def exported() -> Bundle:
    with seeded(0):
        model = golden_model()
    return make_bundle(model, "golden", torch.zeros(2, 1, 4, 4))


def test_the_bundle_of_the_golden_tasks_is_up_to_date() -> None:
    assert exported().manifest.files == read_bundle(BUNDLE).manifest.files


if __name__ == "__main__":
    write_bundle(exported(), BUNDLE)
