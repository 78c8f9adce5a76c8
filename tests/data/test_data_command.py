import argparse
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from edgefl.cli.data import add_parser
from edgefl.data import SCHEMES
from edgefl.errors import DataError


def run(*words: str) -> int:
    parser = argparse.ArgumentParser(prog="edgefl")
    add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["data", *words])
    code: int = args.run(args)
    return code


def test_list_names_every_set_and_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list") == 0
    output = capsys.readouterr().out
    assert "digits.csv.gz" in output
    assert "missing. Download https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz" in output


def test_list_as_json_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "--json") == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert entries["digits"]["found_at"].endswith("digits.csv.gz")
    assert entries["cifar10"]["found_at"] is None
    assert entries["cifar10"]["how_to_get"]


def test_show_without_arguments_shows_the_digits_among_ten_clients(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show") == 0
    output = capsys.readouterr().out
    assert "1442 training and 355 test samples of 1x8x8" in output
    assert "iid, 10 clients, seed 0" in output
    assert max(map(len, output.splitlines())) <= 100


def test_show_as_json_gives_counts_that_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "digits", "--partition", "labels:2", "--clients", "5", "--seed", "3", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    clients = shown["partition"]["clients"]
    assert (shown["partition"]["scheme"], shown["partition"]["seed"], len(clients)) == ("labels:2", 3, 5)
    assert sum(sum(client["label_counts"]) for client in clients) == shown["train_samples"] == 1442
    assert all(sum(count > 0 for count in client["label_counts"]) == 2 for client in clients)
    assert shown["normalisation"]["scale"] == 16


def test_show_by_owner_makes_a_client_an_owner_unless_told_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.npz"
    np.savez(path, x=np.zeros((90, 2)), y=np.arange(90) % 3, owners=np.arange(90) % 15, owner_kind="sensor")
    assert run("show", str(path), "--partition", "owner") == 0
    output = capsys.readouterr().out
    assert "owner, 15 clients" in output
    assert "owners: 15, each a sensor" in output


def test_a_plot_is_announced_on_stderr_so_that_stdout_stays_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plot = tmp_path / "plot.svg"
    assert run("show", "--plot", str(plot), "--json") == 0
    output = capsys.readouterr()
    assert plot.is_file()
    assert str(plot) in output.err
    json.loads(output.out)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--partition", "nonsense"], "not a known partition scheme"),
        (["imagenet"], "neither a known data set"),
        (["--clients", "0"], "1 to 1442"),
        (["--seed", "-1"], "seed"),
        (["--plot", "plot.jpg"], "plot.jpg"),
        (["cifar10"], "cifar-10-binary"),
    ],
)
def test_what_cannot_be_shown_is_an_error_that_the_shell_can_print(words: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        run("show", *words)


def test_a_misspelt_scheme_is_said_before_any_data_is_looked_for() -> None:
    with pytest.raises(DataError, match="not a known partition scheme"):
        run("show", "cifar10", "--partition", "nonsense")


def test_a_plot_of_an_unknown_kind_is_said_before_any_data_is_looked_for() -> None:
    with pytest.raises(DataError, match=r"plot\.jpg"):
        run("show", "cifar10", "--plot", "plot.jpg")


def test_the_help_describes_every_scheme(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("show", "--help")
    described = capsys.readouterr().out.partition("partitions (--partition)")[2]
    assert tuple(re.findall(r"^  (\S+)", described, re.MULTILINE)) == SCHEMES


def test_names_from_a_file_cannot_clear_the_screen_or_forge_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.npz"
    names, kind = ["\x1b[2Jcat", "dog\nowners: 7"], "sensor\r\x9b1A"
    np.savez(path, x=np.zeros((9, 2)), y=np.arange(9) % 2, owners=np.arange(9) % 3, class_names=names, owner_kind=kind)
    assert run("show", str(path), "--clients", "1") == 0
    output = capsys.readouterr().out
    assert r"classes: 0 \x1b[2Jcat, 1 dog\nowners: 7" in output
    assert r"owners: 3, each a sensor\r\x9b1A" in output
    assert output.replace("\n", "").isprintable()
    assert "iid, 1 client, seed 0" in output


def test_the_picture_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert run("show") == 0
    assert max(map(len, capsys.readouterr().out.splitlines()[2:])) > 40  # a file or a pipe has no width
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run("show") == 0
    assert max(map(len, capsys.readouterr().out.splitlines()[2:])) <= 40


def test_a_terminal_without_shades_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    assert run("show") == 0
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    assert b"client" in stream.buffer.getvalue()


def test_no_sub_verb_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        run()
    assert raised.value.code == 2
    assert "ACTION" in capsys.readouterr().err


def test_building_the_parser_imports_neither_numpy_nor_the_data_room() -> None:
    code = (
        "import argparse, sys; from edgefl.cli.data import add_parser;"
        "add_parser(argparse.ArgumentParser().add_subparsers());"
        "print([name for name in ('numpy', 'edgefl.data') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
