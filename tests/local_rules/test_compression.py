"""Compressors: what they lose, what they never lose, and their bits on the wire."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from edgefl.errors import WireFormatError
from edgefl.local_rules.compression import (
    Compressor,
    Drive,
    Eden,
    RandomSubsample,
    ScaledSign,
    SignScale,
    StochasticSign,
    TernGrad,
    TopK,
)
from edgefl.local_rules.compression.hadamard import LARGEST, blocks_of, rotate, rotate_back, rotated_size
from edgefl.local_rules.compression.top_k import kept_count
from edgefl.noise import bits, derive
from edgefl.wire import Bits, Body, BodyKind, Dense, Payload, Sparse, check_tensors, decode, encode, measure

COMPRESSORS: list[Compressor] = [
    StochasticSign(),
    StochasticSign(SignScale.L2),
    ScaledSign(),
    TernGrad(),
    TernGrad(clip=0),
    TopK(),
    Drive(),
    Eden(),
    RandomSubsample(),
    RandomSubsample(0.4, unbiased=False),
]
UPDATES = arrays(
    np.float32,
    array_shapes(max_dims=3, max_side=9),
    elements=st.floats(-1e3, 1e3, width=32, allow_subnormal=False),
)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def wired(payloads: Mapping[str, Payload]) -> Mapping[str, Payload]:
    return decode(encode(Body(BodyKind.UPDATE, payloads))).tensors


def passed(compressor: Compressor, update: np.ndarray, seed: int = 1) -> np.ndarray:
    """An update after its way over the wire."""
    payloads = wired(compressor.compress("a", update, seed))
    return compressor.expand("a", payloads, update.shape, seed)


def data_bits(compressor: Compressor, update: np.ndarray) -> int:
    sizes = measure(encode(Body(BodyKind.UPDATE, compressor.compress("a", update, 1)))).tensor_bytes
    return 8 * sum(sizes.values())


@given(UPDATES, st.sampled_from(COMPRESSORS), st.integers(0, 2**64 - 1))
def test_an_update_comes_back_in_its_shape_and_the_same_every_time(
    update: np.ndarray, compressor: Compressor, seed: int
) -> None:
    before = update.copy()
    found = passed(compressor, update, seed)
    assert found.shape == update.shape
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    assert np.array_equal(found, passed(compressor, update, seed))
    assert np.array_equal(update, before)


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=lambda c: f"{c.name}")
def test_nothing_comes_of_nothing(compressor: Compressor) -> None:
    assert not passed(compressor, np.zeros((7, 13), np.float32)).any()


@pytest.mark.parametrize(
    "compressor",
    [StochasticSign(), StochasticSign(SignScale.L2), TernGrad(clip=0), Eden(), RandomSubsample(0.25)],
    ids=str,
)
def test_the_mean_over_many_seeds_is_the_update(compressor: Compressor) -> None:
    update, runs = normal(256), 1000
    total, squares = np.zeros(256), np.zeros(256)
    for seed in range(runs):
        found = passed_unwired(compressor, update, seed)
        total += found
        squares += found.astype(np.float64) ** 2
    mean = total / runs
    error = np.sqrt((squares / runs - mean**2).max() / runs)
    assert np.abs(mean - update).max() < 5 * error
    assert error < 0.3 * np.abs(update).max()


def passed_unwired(compressor: Compressor, update: np.ndarray, seed: int) -> np.ndarray:
    return compressor.expand("a", compressor.compress("a", update, seed), update.shape, seed)


def test_drive_is_biased_towards_zero_and_nearer_to_the_update_than_eden() -> None:
    update = normal(64, 128)
    drive, eden = passed(Drive(), update), passed(Eden(), update)
    assert np.square(drive - update).sum() < np.square(eden - update).sum()
    # For a rotation that is as good as uniform, the errors are 1 - 2 / pi and pi / 2 - 1 of the squared norm.
    norm = float(np.square(update).sum())
    assert np.square(drive - update).sum() / norm == pytest.approx(1 - 2 / math.pi, abs=0.02)
    assert np.square(eden - update).sum() / norm == pytest.approx(math.pi / 2 - 1, abs=0.03)


@given(st.integers(1, 3000), st.integers(0, 100))
def test_an_update_that_eden_returns_has_its_whole_length_in_the_updates_direction(size: int, seed: int) -> None:
    update = normal(size, seed=seed)
    found = passed_unwired(Eden(), update, seed)
    assert float(np.dot(found, update)) == pytest.approx(float(np.dot(update, update)), rel=1e-3)


def test_drive_and_eden_equal_their_formulas_with_a_rotation_written_out() -> None:
    update = normal(128)
    matrix = np.array([rotate(row, 9) for row in np.eye(128, dtype=np.float32)], np.float64).T
    assert np.allclose(matrix @ matrix.T, np.eye(128), atol=1e-6)
    assert np.allclose(np.abs(matrix), 128**-0.5)
    y = rotate(update, 9).astype(np.float64)
    assert np.allclose(y, matrix @ update, atol=1e-5)
    stream = derive(5, "rotation", "a")
    y = rotate(update, stream).astype(np.float64)
    q = np.where(y >= 0, 1.0, -1.0)
    scales = {"drive": (y @ q) / (q @ q), "eden": (update.astype(np.float64) @ update) / (y @ q)}
    for compressor in (Drive(), Eden()):
        payloads = compressor.compress("a", update, 5)
        scale = payloads["a:scale"]
        assert isinstance(scale, Dense)
        assert scale.array[0] == pytest.approx(scales[compressor.name], rel=1e-6)
        expected = rotate_back((scales[compressor.name] * q).astype(np.float32), 128, stream)
        assert np.allclose(compressor.expand("a", payloads, (128,), 5), expected, atol=1e-6)


@given(st.integers(0, 40_000), st.integers(0, 2**64 - 1))
def test_rotating_back_undoes_a_rotation_and_keeps_the_norm(size: int, stream: int) -> None:
    flat = normal(size)
    turned = rotate(flat, stream)
    assert turned.size == rotated_size(size)
    assert np.allclose(rotate_back(turned, size, stream), flat, atol=1e-4)
    assert float(np.linalg.norm(turned)) == pytest.approx(float(np.linalg.norm(flat)), rel=1e-4)


@given(st.integers(0, 10**6))
def test_blocks_cover_a_tensor_with_almost_no_padding(size: int) -> None:
    blocks = blocks_of(size)
    assert all(width & (width - 1) == 0 and width <= LARGEST for _, width in blocks)
    padding = sum(count * width for count, width in blocks) - size
    assert 0 <= padding < 32
    assert all(count == 1 for count, _ in blocks[1:])


@given(UPDATES, st.floats(0.01, 1))
def test_top_k_keeps_exactly_the_largest_entries(update: np.ndarray, fraction: float) -> None:
    compressor = TopK(fraction)
    found = passed(compressor, update)
    count = kept_count(update.size, compressor.fraction)
    assert 1 <= count <= update.size
    largest = np.sort(np.abs(update).reshape(-1))[::-1][:count]
    assert np.array_equal(np.sort(np.abs(found[found != 0]))[::-1], largest[largest > 0])
    assert np.array_equal(found[found != 0], update[found != 0])


def test_terngrad_has_three_levels_and_clips_what_is_far_out() -> None:
    update = normal(2000)
    update[0] = 100
    found = passed(TernGrad(), update)
    scale = 2.5 * float(update.std())
    assert np.unique(found).tolist() == pytest.approx([-scale, 0, scale])
    assert np.unique(passed(TernGrad(clip=0), update))[-1] == 100
    assert (found[update < 0] <= 0).all()
    assert (found[update > 0] >= 0).all()


def test_scaled_sign_is_the_mean_magnitude_with_the_sign() -> None:
    assert passed(ScaledSign(), np.array([[1, -2], [6, 0]], np.float32)).tolist() == [[2.25, -2.25], [2.25, 2.25]]


def test_stochastic_signs_are_certain_at_the_largest_entry() -> None:
    update = np.array([2, -2] * 500, np.float32)
    assert np.array_equal(passed(StochasticSign(), update), update)
    assert set(np.abs(passed(StochasticSign(SignScale.L2), update))) == {np.float32(2 * 1000**0.5)}


@pytest.mark.parametrize(
    ("compressor", "bits"),
    [
        (StochasticSign(), 1),
        (ScaledSign(), 1),
        (Drive(), 1),
        (Eden(), 1),
        (TernGrad(), 1.6),
        (TopK(0.03), 1.2),
        (RandomSubsample(1 / 32), 1),
    ],
    ids=str,
)
def test_bits_on_the_wire_are_what_they_are_said_to_be(compressor: Compressor, bits: float) -> None:
    update = normal(128, 256, 3, 3)  # a kernel of CNN4
    assert data_bits(compressor, update) / update.size == pytest.approx(bits, rel=0.01)


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=lambda c: f"{c.name}")
def test_training_that_diverged_is_not_compressed(compressor: Compressor) -> None:
    with pytest.raises(WireFormatError, match="not finite"):
        compressor.compress("a", np.array([1, np.inf], np.float32), 1)


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=lambda c: f"{c.name}")
def test_payloads_of_another_size_are_refused(compressor: Compressor) -> None:
    payloads = compressor.compress("a", normal(100), 1)
    for bad in ({}, payloads | {"a": Bits.of(np.ones(3, np.bool_))}, payloads | {"a": Dense(np.ones(7, np.float32))}):
        with pytest.raises(WireFormatError, match=r"'a(:scale)?' is"):
            compressor.expand("a", bad, (100,), 1)
    if "a:scale" in payloads:
        with pytest.raises(WireFormatError, match="'a:scale' is"):
            compressor.expand("a", payloads | {"a:scale": Dense(np.ones(7, np.float32))}, (100,), 1)


@given(UPDATES, st.sampled_from(COMPRESSORS), st.integers(0, 2**64 - 1))
def test_payloads_have_the_forms_that_they_are_said_to_have(
    update: np.ndarray, compressor: Compressor, seed: int
) -> None:
    payloads = wired(compressor.compress("a", update, seed))
    check_tensors(payloads, compressor.expected("a", update.shape))
    compressor.check("a", payloads, update.shape)


@pytest.mark.parametrize("compressor", [StochasticSign(), ScaledSign(), TernGrad(), Drive(), Eden()], ids=str)
def test_a_scale_below_zero_is_refused(compressor: Compressor) -> None:
    payloads = compressor.compress("a", normal(100), 1)
    scale = payloads["a:scale"]
    assert isinstance(scale, Dense)
    with pytest.raises(WireFormatError, match="'a:scale' holds a scale below zero"):
        compressor.check("a", payloads | {"a:scale": Dense(-scale.array)}, (100,))


def test_top_k_takes_exactly_as_many_entries_as_are_kept() -> None:
    for count in (2, 4):
        more = {"a": Sparse.at((100,), np.arange(count), np.ones(count, np.float32))}
        with pytest.raises(WireFormatError, match=f"'a' has {count} entries, but 3 are kept"):
            TopK(0.03).check("a", more, (100,))


@given(UPDATES, st.floats(0.01, 1), st.integers(0, 2**64 - 1))
def test_random_entries_are_scaled_or_as_they_were(update: np.ndarray, fraction: float, seed: int) -> None:
    plain = passed(RandomSubsample(fraction, unbiased=False), update, seed)
    count = min(update.size, max(1, round(fraction * update.size)))
    sent = np.sort(bits(derive(seed, "subsample", "a"), 0, update.size))[:count]
    chosen = np.isin(bits(derive(seed, "subsample", "a"), 0, update.size), sent).reshape(update.shape)
    assert np.array_equal(plain, np.where(chosen, update, 0))
    scaled = passed(RandomSubsample(fraction), update, seed)
    assert np.array_equal(scaled, plain * np.float32(update.size / count))


def test_every_seed_and_every_tensor_sends_other_entries() -> None:
    update = np.ones(400, np.float32)
    compressor = RandomSubsample(0.5, unbiased=False)
    found = {compressor.expand(n, compressor.compress(n, update, s), (400,), s).tobytes() for n in "ab" for s in (1, 2)}
    assert len(found) == 4


def test_a_byte_that_five_levels_cannot_make_is_refused() -> None:
    payloads = TernGrad().compress("a", normal(5), 1) | {"a": Dense(np.array([243], np.uint8))}
    with pytest.raises(WireFormatError, match="above 242"):
        TernGrad().expand("a", payloads, (5,), 1)
    with pytest.raises(WireFormatError, match="above 242"):
        TernGrad().check("a", payloads, (5,))
