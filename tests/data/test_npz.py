from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgefl.data import load
from edgefl.errors import DataError
from tests.data.files import zipped

X = np.arange(40, dtype=np.float32).reshape(20, 2)
Y = np.arange(20) % 2


def save(folder: Path, **arrays: Any) -> Path:
    path = folder / "mine.npz"
    np.savez(path, **arrays)
    return path


def test_without_a_test_part_every_fifth_sample_of_a_label_is_the_test_part(tmp_path: Path) -> None:
    dataset = load(save(tmp_path, x=X, y=Y))
    assert dataset.name == "mine"
    assert (len(dataset.train), len(dataset.test)) == (16, 4)
    assert dataset.test.features.tolist() == X[[8, 9, 18, 19]].tolist()
    assert dataset.normalisation is None


def test_without_a_test_part_every_owner_keeps_samples_to_train_on(tmp_path: Path) -> None:
    # Owners and labels that alternate in step would lose whole owners to a plain every-fifth rule.
    dataset = load(save(tmp_path, x=np.zeros((90, 2)), y=np.arange(90) % 3, owners=np.arange(90) % 15))
    assert dataset.train.owners is not None
    assert np.bincount(dataset.train.owners).tolist() == [5] * 15
    assert len(dataset.test) == 15


def test_a_given_test_part_is_used(tmp_path: Path) -> None:
    dataset = load(save(tmp_path, x=X, y=Y, x_test=X[:3], y_test=Y[:3] + 1))
    assert (len(dataset.train), len(dataset.test)) == (20, 3)
    assert dataset.classes == 3


def test_owners_may_be_any_numbers_or_names(tmp_path: Path) -> None:
    numbers = np.array([1007, 7] * 10)
    by_number = load(save(tmp_path, x=X, y=Y, owners=numbers, x_test=X[:1], y_test=Y[:1], owners_test=[99]))
    assert by_number.owner_names == ("7", "99", "1007")
    assert by_number.train.owners is not None
    assert by_number.train.owners[:2].tolist() == [2, 0]
    names = np.array(["zoe", "ada"] * 10)
    by_name = load(save(tmp_path, x=X, y=Y, owners=names, owner_kind="writer"))
    assert (by_name.owner_kind, by_name.owner_names) == ("writer", ("ada", "zoe"))


def test_bytes_are_normalised_by_their_own_mean(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (20, 3, 4, 4), dtype=np.uint8)
    dataset = load(save(tmp_path, x=images, y=Y, class_names=["cat", "dog"]))
    features, _ = dataset.batch(np.arange(len(dataset.train)))
    np.testing.assert_allclose(features.mean(axis=(0, 2, 3)), 0, atol=1e-5)
    assert dataset.class_names == ("cat", "dog")


def test_columns_first_and_big_endian_arrays_are_read_right(tmp_path: Path) -> None:
    dataset = load(save(tmp_path, x=np.asfortranarray(X.astype(">f8")), y=Y.astype(">i4")))
    np.testing.assert_array_equal(dataset.pooled().train.features[:4], X[:4])


def test_bytes_in_three_dimensions_are_grey_images(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (20, 4, 5), dtype=np.uint8)
    dataset = load(save(tmp_path, x=images, y=Y, x_test=images[:3], y_test=Y[:3]))
    np.testing.assert_array_equal(dataset.train.features, images[:, np.newaxis])
    assert dataset.test.features.shape == (3, 1, 4, 5)
    assert dataset.normalisation is not None
    assert len(dataset.normalisation.mean) == 1


def test_an_array_is_meant_only_by_its_whole_name(tmp_path: Path) -> None:
    nested = {"train/x": X, "train/y": Y, "test/x": X, "test/y": Y}
    with pytest.raises(DataError, match="lacks an array 'x'"):
        load(save(tmp_path, **nested))
    assert len(load(save(tmp_path, **nested, x=X[:10], y=Y[:10])).pooled().train) == 10


def test_compressed_files_are_read_too(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "small.npz", x=X, y=Y)
    assert len(load(tmp_path / "small.npz").train) == 16


@pytest.mark.parametrize(
    ("arrays", "word"),
    [
        ({"x": X}, "lacks an array 'x' or 'y'"),
        ({"y": Y}, "lacks an array 'x'"),
        ({"x": X, "y": Y[:3]}, "shape"),
        ({"x": X, "y": Y * 1.0}, "float64"),
        ({"x": X, "y": Y - 1}, "-1"),
        ({"x": X, "y": Y * 10**9}, "A label is"),
        ({"x": X * np.nan, "y": Y}, "NaN"),
        ({"x": X.astype(np.float64) * 1e300, "y": Y}, "float32"),
        ({"x": np.array(["a"] * 20), "y": Y}, "type"),
        ({"x": X, "y": Y, "x_test": X}, "only one"),
        ({"x": X, "y": Y, "x_test": X[:, :1], "y_test": Y}, "shape"),
        ({"x": X, "y": Y, "x_test": X, "y_test": Y, "owners": Y}, "only one of 'owners'"),
        ({"x": X, "y": Y, "owners": Y * 0.5}, "owners"),
        ({"x": X, "y": Y, "class_names": ["one"]}, "class names"),
        ({"x": X[:0], "y": Y[:0]}, "damaged|no training"),
        ({"x": np.array([{}] * 20, dtype=object), "y": Y}, "unpickled"),
    ],
)
def test_arrays_that_make_no_data_set_are_refused(tmp_path: Path, arrays: dict[str, Any], word: str) -> None:
    with pytest.raises(DataError, match=word):
        load(save(tmp_path, **arrays))


def npy(header: str) -> bytes:
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 8)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -8)}",
        "{'descr': '|S0', 'fortran_order': False, 'shape': (9,)}",
        "{'descr': 7, 1: 2, 'shape': 3}",
        "{'descr': '<f8'",
        "(((((((",
        "'\\x00",
        "",
    ],
)
def test_no_header_is_believed_before_its_array_is_there(tmp_path: Path, header: str) -> None:
    path = tmp_path / "lies.npz"
    path.write_bytes(zipped({"x.npy": npy(header) + b"few bytes", "y.npy": npy(header)}))
    with pytest.raises(DataError, match=r"lies\.npz:x\.npy"):
        load(path)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(cut=st.integers(0, 2000), flips=st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 255)), max_size=4))
def test_a_file_with_flipped_or_missing_bytes_never_gives_a_traceback(
    tmp_path: Path, cut: int, flips: list[tuple[int, int]]
) -> None:
    content = bytearray(save(tmp_path, x=X, y=Y).read_bytes())
    for position, change in flips:
        content[position % len(content)] ^= change
    (tmp_path / "flipped.npz").write_bytes(content[: max(cut, 1) % len(content) + 1 if cut else len(content)])
    dataset = None
    with suppress(DataError):  # any other exception fails the test
        dataset = load(tmp_path / "flipped.npz")
    assert dataset is None or len(dataset.train) + len(dataset.test) == 20
