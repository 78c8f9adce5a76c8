from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgefl.data import Dataset, Normalisation, Samples, load
from edgefl.data.samples import read_only
from edgefl.errors import DataError
from tests.data.files import cifar10_members, har_members, idx_folder, tar, unpack


def samples(count: int = 4, owners: NDArray[np.int64] | None = None) -> Samples:
    features = np.arange(count * 3 * 2 * 2, dtype=np.uint8).reshape(count, 3, 2, 2)
    return Samples(features, np.arange(count) % 2, owners)


def test_samples_do_not_change_when_the_arrays_they_were_made_from_do() -> None:
    features, labels = np.zeros((2, 3)), np.array([0, 1])
    value = Samples(features, labels)
    features[0, 0] = 9
    labels[0] = 1
    assert value.features[0, 0] == 0
    assert value.labels[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        value.features[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        value.labels[0] = 1


def test_a_read_only_array_is_taken_without_a_copy() -> None:
    features = np.frombuffer(bytes(6), dtype=np.uint8).reshape(2, 3)
    assert np.shares_memory(Samples(features, np.array([0, 1])).features, features)


def test_a_read_only_view_of_an_array_that_can_change_is_copied() -> None:
    features = np.zeros((2, 3))
    view = features[:]
    view.flags.writeable = False
    value = Samples(view, np.array([0, 1]))
    features[0, 0] = 9
    assert value.features[0, 0] == 0
    buffer = bytearray(6)
    over_buffer = np.frombuffer(memoryview(buffer).toreadonly(), dtype=np.uint8).reshape(2, 3)
    assert not np.shares_memory(Samples(over_buffer, np.array([0, 1])).features, over_buffer)


def test_loaders_hand_their_arrays_over_without_a_second_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bool] = []

    def watched(array: NDArray[Any]) -> NDArray[Any]:
        taken.append(read_only(array) is array)
        return read_only(array)

    monkeypatch.setattr("edgefl.data.samples.read_only", watched)
    idx_folder(tmp_path / "mnist")
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(tar(cifar10_members()))
    unpack(tmp_path, har_members())
    np.savez(tmp_path / "mine.npz", x=np.zeros((20, 3, 4), dtype=np.uint8), y=np.arange(20) % 2)
    for name in ("mnist", "cifar10", "har"):
        load(name, tmp_path)
    load(tmp_path / "mine.npz").pooled()
    load("digits")
    assert len(taken) >= 10
    assert all(taken)


@pytest.mark.parametrize(
    ("features", "labels", "owners", "word"),
    [
        (np.zeros((2, 3)), np.array([0]), None, "labels"),
        (np.zeros((2, 3)), np.array([0.0, 1.0]), None, "float64"),
        (np.zeros((2, 3)), np.array([0, -1]), None, "-1"),
        (np.zeros((2, 3)), np.array([0, 1]), np.array([0]), "owners"),
        (np.array(["a", "b"]), np.array([0, 1]), None, "features"),
        (np.zeros(2), np.array([0, 1]), None, "shape"),
        (np.array([[np.nan], [1.0]]), np.array([0, 1]), None, "NaN"),
        (np.array([[-1e300], [1.0]]), np.array([0, 1]), None, "float32"),
    ],
)
def test_samples_that_do_not_fit_together_are_refused(
    features: NDArray[np.float64],
    labels: NDArray[np.int64],
    owners: NDArray[np.int64] | None,
    word: str,
) -> None:
    with pytest.raises(DataError, match=word):
        Samples(features, labels, owners)


def test_a_batch_is_normalised_by_channel_as_float32() -> None:
    scaling = Normalisation((0.1, 0.2, 0.3), (0.5, 1.0, 2.0))
    dataset = Dataset("toy", samples(), samples(2), 2, normalisation=scaling)
    features, labels = dataset.batch([2, 0])
    raw = dataset.train.features[[2, 0]] / 255
    mean, std = np.array([0.1, 0.2, 0.3]), np.array([0.5, 1.0, 2.0])
    expected = (raw - mean[None, :, None, None]) / std[None, :, None, None]
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, expected, atol=1e-6)
    assert labels.tolist() == [0, 0]


def test_a_batch_of_the_test_part_comes_from_the_test_part() -> None:
    dataset = Dataset("toy", samples(4), samples(2), 2)
    features, _ = dataset.batch(np.array([1]), "test")
    np.testing.assert_array_equal(features[0], dataset.test.features[1])


def test_a_part_that_a_data_set_does_not_have_is_refused() -> None:
    part: Any = "validation"
    with pytest.raises(DataError, match="no part 'validation'"):
        Dataset("toy", samples(), samples(), 2).batch([0], part)


def test_without_normalisation_integers_stay_tokens_and_floats_become_float32() -> None:
    tokens = Dataset("toy", samples(), samples(), 2)
    assert tokens.batch([0])[0].dtype == np.int64
    floats = Samples(np.zeros((2, 3)), np.array([0, 1]))
    assert Dataset("toy", floats, floats, 2).batch([0])[0].dtype == np.float32


@pytest.mark.parametrize("indices", [[4], [-1], [0.5], [[0]]])
def test_indices_that_choose_no_sample_are_refused(indices: list[int]) -> None:
    with pytest.raises(DataError, match="ndices"):
        Dataset("toy", samples(4), samples(), 2).batch(indices)


def test_an_empty_batch_is_a_batch() -> None:
    features, labels = Dataset("toy", samples(), samples(), 2).batch([])
    assert features.shape == (0, 3, 2, 2)
    assert labels.shape == (0,)


def test_measured_normalisation_is_the_mean_and_deviation_of_every_channel() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5000, 2, 3, 3), dtype=np.uint8)
    scaling = Normalisation.measured(pixels)
    np.testing.assert_allclose(scaling.mean, (pixels / 255).mean(axis=(0, 2, 3)), rtol=1e-9)
    np.testing.assert_allclose(scaling.std, (pixels / 255).std(axis=(0, 2, 3)), rtol=1e-9)


def test_a_constant_channel_is_not_divided_by_zero() -> None:
    assert Normalisation.measured(np.full((4, 3), 7, dtype=np.uint8)).std == (1.0,)


@pytest.mark.parametrize(
    ("mean", "std", "scale"),
    [((), (), 255.0), ((0.1,), (0.1, 0.2), 255.0), ((0.1,), (0.0,), 255.0), ((np.nan,), (1.0,), 1.0)],
)
def test_a_normalisation_that_cannot_be_is_refused(
    mean: tuple[float, ...], std: tuple[float, ...], scale: float
) -> None:
    with pytest.raises(DataError):
        Normalisation(mean, std, scale)


def test_a_data_set_that_contradicts_itself_is_refused() -> None:
    other_shape = Samples(np.zeros((1, 5)), np.array([0]))
    owned = samples(4, np.array([0, 1, 2, 0]))
    empty = Samples(np.zeros((0, 3)), np.zeros(0, dtype=np.int64))
    with pytest.raises(DataError, match="reach 1, beyond 0"):
        Dataset("toy", samples(), samples(), 1)
    with pytest.raises(DataError, match="class names"):
        Dataset("toy", samples(), samples(), 2, class_names=("one",))
    with pytest.raises(DataError, match="shape"):
        Dataset("toy", samples(), other_shape, 2)
    with pytest.raises(DataError, match="owners of its samples only partially"):
        Dataset("toy", owned, samples(), 2, owner_kind="writer", owner_names=("a", "b", "c"))
    with pytest.raises(DataError, match="owners"):
        Dataset("toy", owned, owned, 2, owner_kind="writer", owner_names=("a", "b"))
    with pytest.raises(DataError, match="channels"):
        Dataset("toy", samples(), samples(), 2, normalisation=Normalisation((0.1, 0.2), (1.0, 1.0)))
    with pytest.raises(DataError, match="no training samples"):
        Dataset("toy", empty, empty, 2)


def test_pooling_moves_every_test_sample_and_its_owner_into_the_training_part() -> None:
    train, test = samples(4, np.array([0, 0, 1, 1])), samples(2, np.array([2, 2]))
    pooled = Dataset("toy", train, test, 2, owner_kind="subject", owner_names=("a", "b", "c")).pooled()
    assert pooled.train.owners is not None
    assert pooled.train.owners.tolist() == [0, 0, 1, 1, 2, 2]
    assert len(pooled.test) == 0
    np.testing.assert_array_equal(pooled.train.features[4:], test.features)


def test_pooling_an_empty_test_part_changes_nothing() -> None:
    dataset = Dataset("toy", samples(4, np.zeros(4, int)), samples(0), 2, owner_kind="subject", owner_names=("a",))
    assert dataset.pooled() is dataset
