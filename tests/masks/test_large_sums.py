"""Sums of large tensors, which two threads divide between them."""

import numpy as np

from edgefl.masks import add_changes


def test_a_large_sum_has_the_bits_of_a_plain_one() -> None:
    generator = np.random.default_rng(0)
    base, one, two, before = generator.normal(size=(4, 3, 2**18 + 5)).astype(np.float32)
    total = before.copy()
    add_changes(total, base, [(one, 3.0), (two, 0.7)])
    plain = before + (one - base) * np.float32(3.0)
    plain += (two - base) * np.float32(0.7)
    assert total.tobytes() == plain.tobytes()
