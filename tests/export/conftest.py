"""Tests of the exporter draw weights and batches with torch: from the same seed every time."""

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)
