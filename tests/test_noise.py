import json
import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl import noise
from edgefl.errors import SchemaError

GOLDEN = json.loads((Path(__file__).parent / "golden" / "noise.json").read_text())
WORDS = st.integers(0, 2**64 - 1)


def slow_bits(seed: int, index: int) -> int:
    """The specification, word by word, in unbounded integers."""
    mask = 2**64 - 1
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def test_bits_equal_the_published_splitmix64_sequence() -> None:
    # The first outputs of SplitMix64 seeded with 1234567, as several independent implementations print them.
    assert noise.bits(1234567, 0, 3).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


@given(WORDS, WORDS, st.integers(0, 40))
def test_bits_follow_the_specification_at_any_index(seed: int, start: int, count: int) -> None:
    expected = [slow_bits(seed, (start + i) % 2**64) for i in range(count)]
    assert noise.bits(seed, start, count).tolist() == expected


def test_a_stream_is_the_same_whole_or_in_parts() -> None:
    whole = noise.symmetric(7, 0, 100_000, 0.01)
    parts = [noise.symmetric(7, start, 12_500, 0.01) for start in range(0, 100_000, 12_500)]
    assert np.array_equal(whole, np.concatenate(parts))


def test_bits_at_picks_from_the_stream() -> None:
    indices = np.array([[5, 0], [99_999, 5]])
    assert np.array_equal(noise.bits_at(3, indices), noise.bits(3, 0, 100_000)[indices])


@given(WORDS, st.floats(1e-30, 1e30))
def test_symmetric_stays_below_its_bound(seed: int, bound: float) -> None:
    values = noise.symmetric(seed, 0, 100, bound)
    assert np.all(values >= -np.float32(bound))
    assert np.all(values < np.float32(bound))


def test_the_extreme_words_give_the_ends_of_the_range() -> None:
    low, high = np.array([0], np.uint64), np.array([2**64 - 1], np.uint64)
    for bound in (0.01, 0.005, 1.0, np.float32(1) + np.finfo(np.float32).eps):
        scale = np.float32(bound)
        ends = [(noise._top_24_bits(word)[0] - np.float32(2**23)) * np.float32(2**-23) for word in (low, high)]
        assert ends[0] * scale == -scale
        assert ends[1] * scale < scale


def test_unit_is_uniform() -> None:
    values = noise.unit(1, 0, 200_000)
    counts, _ = np.histogram(values, bins=20, range=(0, 1))
    assert values.min() >= 0
    assert values.max() < 1
    assert np.abs(counts - 10_000).max() < 6 * np.sqrt(10_000)


def test_normal_numbers_are_the_quantiles_of_their_words() -> None:
    exact = statistics.NormalDist().inv_cdf
    powers = np.array([2**power for power in range(32)], np.uint64)
    seams = [round(share * 2**32) + near for share in (0.075, 0.5, 0.925) for near in range(-3, 3)]
    tops = np.unique(
        np.concatenate([powers, powers - np.uint64(1), np.uint64(2**32) - powers, np.array(seams, np.uint64)])
    )
    tops = np.concatenate([tops, noise.bits(5, 0, 5000) >> np.uint64(32)])
    found = noise._normal_quantiles((tops.astype(np.float64) - 2147483647.5) * 2.0**-32)
    expected = np.array([exact((top + 0.5) / 2**32) for top in tops.tolist()])
    assert np.abs(found / expected - 1).max() < 2e-7
    assert np.all(np.diff(found[np.argsort(tops, kind="stable")]) >= 0)


def test_normal_numbers_are_as_symmetric_as_their_words() -> None:
    centred = np.array([0.5, 3.5, 1e6 + 0.5, 2**31 - 0.5]) * 2.0**-32
    assert np.array_equal(noise._normal_quantiles(centred), -noise._normal_quantiles(-centred))


def test_normal_numbers_have_the_moments_and_the_tails_of_a_normal_distribution() -> None:
    count = 1_000_000
    values = noise.normal(8, 0, count, 1.0).astype(np.float64)
    for power, moment, variance in [(1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)]:
        assert abs((values**power).mean() - moment) < 4 * (variance / count) ** 0.5, power
    for limit in (0.5, 1.0, 2.0, 3.0, 4.0, 4.5):
        expected = 2 * count * statistics.NormalDist().cdf(-limit)
        assert abs((np.abs(values) > limit).sum() - expected) < 4 * expected**0.5, limit
    neighbours = float((values[1:] * values[:-1]).mean())
    assert abs(neighbours) < 4 / count**0.5


def test_the_largest_normal_numbers_are_finite_and_lie_beyond_six_deviations() -> None:
    for case, sign in zip(GOLDEN["normal"][-4::2], (-1, 1), strict=True):
        (value,) = noise.normal(int(case["seed"]), 0, 1, 2.0**124)
        assert np.isfinite(value)
        assert 6.33 < sign * value / np.float32(2.0**124) < 6.34
    with pytest.raises(SchemaError, match=r"bound of the noise is 4\.2"):
        noise.normal(0, 0, 1, 2.0**125)


def test_rademacher_numbers_have_one_size_and_either_sign() -> None:
    values = noise.rademacher(2, 0, 100_000, 0.01)
    assert set(values.tolist()) == {np.float32(0.01), -np.float32(0.01)}
    assert abs((values > 0).sum() - 50_000) < 5 * 100_000**0.5 / 2
    assert np.array_equal(values > 0, noise.symmetric(2, 0, 100_000, 0.01) >= 0)


@pytest.mark.parametrize("generate", [noise.normal, noise.rademacher])
def test_any_part_of_a_stream_of_either_kind_is_the_same(generate: Callable[..., np.ndarray]) -> None:
    whole = generate(7, 0, 100_000, 0.01)
    assert np.array_equal(whole[37_001:61_000], generate(7, 37_001, 23_999, 0.01))


def test_derived_seeds_follow_the_specification() -> None:
    word = int.from_bytes(bytes.fromhex("ca978112ca1bbdca"), "little")  # SHA-256 of "a" begins like this
    assert noise.derive(9, "a", 4) == slow_bits(slow_bits(9, word), 4)
    assert noise.derive(9) == 9


def test_golden_values_are_reproduced() -> None:
    for case in GOLDEN["bits"]:
        words = noise.bits(int(case["seed"]), int(case["start"]), len(case["words"]))
        assert [f"{word:016x}" for word in words.tolist()] == case["words"]
    for case in GOLDEN["symmetric"]:
        values = noise.symmetric(int(case["seed"]), int(case["start"]), len(case["floats"]), case["bound"])
        assert [f"{word:08x}" for word in values.view(np.uint32).tolist()] == case["floats"]
    for case in GOLDEN["normal"]:
        values = noise.normal(int(case["seed"]), int(case["start"]), len(case["floats"]), case["bound"])
        assert [f"{word:08x}" for word in values.view(np.uint32).tolist()] == case["floats"]
    for case in GOLDEN["rademacher"]:
        values = noise.rademacher(int(case["seed"]), int(case["start"]), len(case["floats"]), case["bound"])
        assert [f"{word:08x}" for word in values.view(np.uint32).tolist()] == case["floats"]
    for case in GOLDEN["unit"]:
        values = noise.unit(int(case["seed"]), int(case["start"]), len(case["floats"]))
        assert [f"{word:08x}" for word in values.view(np.uint32).tolist()] == case["floats"]
    for case in GOLDEN["derive"]:
        assert noise.derive(int(case["seed"]), *case["parts"]) == int(case["derived"])


@pytest.mark.parametrize("bound", [0.0, -1.0, float("nan"), float("inf"), 1e-40, 1e39])
def test_a_bound_that_is_no_normal_float32_is_refused(bound: float) -> None:
    with pytest.raises(SchemaError, match="bound"):
        noise.symmetric(0, 0, 1, bound)


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_beyond_64_bits_is_refused(seed: int) -> None:
    with pytest.raises(SchemaError, match="seed"):
        noise.bits(seed, 0, 1)


def test_a_negative_index_or_count_is_refused() -> None:
    with pytest.raises(SchemaError, match="-3"):
        noise.bits_at(0, np.array([-3]))
    with pytest.raises(SchemaError, match="-3"):
        noise.unit(0, 0, -3)


def test_numpy_integers_are_integers_and_fractions_are_not() -> None:
    assert noise.bits_at(3, np.int64(5)) == noise.bits(3, 0, 6)[5]  # type: ignore[arg-type]
    assert noise.bits(np.uint64(3), np.int64(5), 1) == noise.bits(3, 5, 1)  # type: ignore[arg-type]
    assert noise.derive(7, np.int64(5)) == noise.derive(7, 5)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="whole number"):
        noise.bits(1.7, 0, 1)  # type: ignore[arg-type]
