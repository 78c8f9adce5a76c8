import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from edgefl.data import save_plot, text_picture
from edgefl.data.partition_plot import _figure, _ticks
from edgefl.data.partition_text import distance_from_whole
from edgefl.errors import DataError, MissingDependencyError


def test_a_picture_shows_clients_sizes_and_shares() -> None:
    lines = text_picture(np.array([[40, 0, 0], [10, 5, 5], [0, 0, 20]])).splitlines()
    assert lines[0].split() == ["client", "samples", "0", "1", "2"]
    assert lines[1].split() == ["0", "40", "█" * 12, "██", "··", "··"]
    assert lines[2].split() == ["1", "20", "█" * 6, "▒▒", "░░", "░░"]
    assert "samples per client: 20 to 40, median 20" in lines
    assert "classes per client: 1 to 3, median 1" in lines


def test_a_plain_picture_is_ascii() -> None:
    assert text_picture(np.array([[1, 2], [3, 0]]), plain=True).isascii()


def test_a_single_sample_among_very_many_is_seen() -> None:
    assert text_picture(np.array([[10**12, 1, 0]])).splitlines()[1].split()[-3:] == ["██", "░░", "··"]


@pytest.mark.parametrize("clients", [1, 24, 25, 3000])
@pytest.mark.parametrize("classes", [1, 10, 23, 24, 40, 62, 69, 70, 80, 100, 1000])
def test_a_picture_is_at_most_100_columns_wide_and_says_what_it_leaves_out(clients: int, classes: int) -> None:
    picture = text_picture(np.ones((clients, classes), dtype=np.int64))
    assert max(map(len, picture.splitlines())) <= 100
    assert ("more client" in picture) == (clients > 24)
    columns = len(re.findall("█", picture.splitlines()[1])) - 12
    assert ("every column stands for" in picture) == (classes > columns)


@pytest.mark.parametrize("width", [30, 40, 59, 60, 80, 100])
@pytest.mark.parametrize("classes", [1, 10, 40, 1000])
def test_a_picture_fits_a_narrow_terminal(width: int, classes: int) -> None:
    counts = np.ones((30, classes), dtype=np.int64)
    assert max(map(len, text_picture(counts, width=width).splitlines())) <= width
    assert text_picture(counts, width=1) == text_picture(counts, width=30)


def test_one_client_that_is_left_out_is_one_client() -> None:
    assert "... and 1 more client\n" in text_picture(np.ones((25, 2), dtype=np.int64))


def test_the_header_numbers_stand_over_their_classes() -> None:
    counts = np.zeros((1, 40), dtype=np.int64)
    counts[0, [0, 10, 30]] = 1
    header, row = text_picture(counts).splitlines()[:2]
    for number in ("0", "10", "30"):
        position = header.index(f" {number}", 29) + 1
        assert row[position] == "█", number


def test_a_table_without_clients_or_with_an_empty_one_is_refused() -> None:
    for shape in ((0, 3), (3, 0), (2, 2)):
        with pytest.raises(DataError):
            text_picture(np.zeros(shape, dtype=np.int64))


def test_the_distance_from_the_whole_by_hand() -> None:
    assert distance_from_whole(np.array([[5, 5], [1, 1]])) == 0
    # each of two clients has one of two equal classes: |1 - 1/2| + |0 - 1/2|, halved
    assert distance_from_whole(np.array([[7, 0], [0, 7]])) == pytest.approx(0.5)


@pytest.mark.parametrize(("suffix", "magic"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_a_plot_is_written_in_the_format_of_its_suffix(tmp_path: Path, suffix: str, magic: bytes) -> None:
    file = tmp_path / f"plot{suffix.upper()}"
    counts = np.random.default_rng(0).integers(1, 50, (130, 40))
    save_plot(counts, file, title=r"a $\foo{$ title", class_names=tuple(rf"$\x{{${n}\x1b" for n in range(40)))
    assert file.read_bytes().startswith(magic)


def test_a_plot_of_very_many_clients_has_few_ticks_and_few_objects() -> None:
    figure = _figure(np.ones((30_000, 10), dtype=np.int64), "many", None)
    table, sizes = figure.axes[:2]
    assert table.get_yticks().tolist() == list(range(0, 30_000, 2000))
    assert len(sizes.patches) == 1


@pytest.mark.parametrize(("count", "step"), [(1, 1), (26, 1), (27, 2), (53, 5), (2601, 200), (10**9, 50_000_000)])
def test_ticks_are_round_numbers_without_an_end(count: int, step: int) -> None:
    ticks = _ticks(count)
    assert ticks == list(range(0, count, step))
    assert len(ticks) <= 26


def test_plotting_does_not_touch_pyplot(tmp_path: Path) -> None:
    code = (
        "import sys, numpy, pathlib; from edgefl.data import save_plot;"
        "save_plot(numpy.ones((2, 2), int), pathlib.Path(sys.argv[1]), title='plot');"
        "print('matplotlib.figure' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "plot.png")]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout.split() == ["True", "False"]


@pytest.mark.parametrize("name", ["plot.jpg", "plot", ".png"])
def test_a_plot_of_an_unknown_kind_lists_the_kinds(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"\.png, \.svg, \.pdf"):
        save_plot(np.ones((2, 2), dtype=np.int64), tmp_path / name, title="plot")


def test_a_plot_into_a_folder_that_is_not_there_is_an_error_and_no_traceback(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be written"):
        save_plot(np.ones((2, 2), dtype=np.int64), tmp_path / "nowhere" / "plot.png", title="plot")


def test_without_matplotlib_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match=r"pip install '.*\[plot\]'"):
        save_plot(np.ones((2, 2), dtype=np.int64), tmp_path / "plot.png", title="plot")
