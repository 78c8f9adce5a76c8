"""The comparison with Flower as far as it goes without Flower: what it reads, measures and prints, and our own side."""

import dataclasses
import socket
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import bare_loop, edgefl_rounds, flower_deployment, flower_simulation, preparing, torch_client
from benchmarks.peers.case import Case, chosen_clients, read_case, read_left, write_case
from benchmarks.peers.loopback import Meter
from benchmarks.peers.preparing import prepare
from benchmarks.peers.processes import Watch, family, run
from benchmarks.peers.table import Target, judged, table
from edgefl.errors import DataError
from export.zoo import build

TINY = Case(model="mlp", rounds=2, clients=3, per_round=2, samples=40, batch=16, workers=1)


@pytest.mark.parametrize("parser", [flower_simulation.parser, flower_deployment.parser])
def test_the_commands_take_what_their_documentation_says(parser: Callable[[], ArgumentParser]) -> None:
    assert parser().parse_args(["--model", "mlp", "--rounds", "4", "--turns", "2"]).rounds == 4
    with pytest.raises(SystemExit):
        parser().parse_args(["--model", "vgg16"])


@pytest.fixture
def without_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that does not have Fashion-MNIST."""

    def load(name: str) -> None:
        raise DataError(f"{name} is not here", fix="Install it.")

    monkeypatch.setattr(preparing, "load", load)


@pytest.mark.usefixtures("without_images")
def test_our_side_does_the_rounds_and_leaves_a_changed_model(tmp_path: Path) -> None:
    prepare(tmp_path, TINY)
    edgefl_rounds.main(tmp_path)
    left, first = read_left(tmp_path, "edgefl"), read_case(tmp_path)[3]
    assert len(left.ends) == TINY.rounds
    assert left.weights.keys() == first.keys()
    assert all(np.abs(left.weights[name] - first[name]).max() > 0 for name in first)


@pytest.mark.usefixtures("without_images")
def test_our_side_takes_a_network_with_running_statistics(tmp_path: Path) -> None:
    prepare(tmp_path, dataclasses.replace(TINY, model="cnn4", rounds=1, per_round=1))
    edgefl_rounds.main(tmp_path)
    assert read_left(tmp_path, "edgefl").weights.keys() >= read_case(tmp_path)[3].keys()


@pytest.mark.usefixtures("without_images")
def test_one_client_of_one_batch_makes_the_same_model_everywhere(tmp_path: Path) -> None:
    prepare(tmp_path, dataclasses.replace(TINY, clients=1, per_round=1, batch=40))
    edgefl_rounds.main(tmp_path)
    bare_loop.main(tmp_path)
    ours, theirs = (read_left(tmp_path, name).weights for name in ("edgefl", "bare"))
    for name, array in theirs.items():
        np.testing.assert_allclose(ours[name], array, rtol=1e-4, atol=1e-6)


def test_the_network_of_the_others_is_that_of_the_zoo() -> None:
    ours, theirs = build("cnn4").state_dict(), torch_client.build("cnn4").state_dict()
    assert {name: tensor.shape for name, tensor in ours.items()} == {n: tensor.shape for n, tensor in theirs.items()}


def test_a_case_is_read_as_it_was_written(tmp_path: Path) -> None:
    x, y = np.arange(12, dtype=np.uint8).reshape(3, 1, 2, 2), np.array([0, 1, 2])
    write_case(tmp_path, TINY, x, y, {"w": np.ones(2, np.float32)})
    case, images, labels, weights = read_case(tmp_path)
    assert case == TINY
    assert (images == x).all()
    assert (labels == y).all()
    assert weights["w"].tolist() == [1, 1]
    assert len(set(chosen_clients(case, 0))) == case.per_round


def test_a_run_is_watched_with_what_it_starts(tmp_path: Path) -> None:
    hungry = "b = bytearray(80_000_000); import time; time.sleep(0.6)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hungry!r}])"
    found = run([sys.executable, "-c", parent], {}, tmp_path / "log", watched=True)
    assert found.peak_bytes is not None
    assert found.peak_bytes > 80e6
    assert found.seconds > 0.6


def test_a_failed_run_shows_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no such luck"):
        run([sys.executable, "-c", "raise SystemExit('no such luck')"], {}, tmp_path / "log", watched=False)


def test_a_family_keeps_members_that_lost_their_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert process.pid in family(1_000_000_000, frozenset({process.pid}))
        process.communicate(b"\n")
    assert process.pid not in family(1_000_000_000, frozenset({process.pid}))


def test_the_meter_counts_what_crosses_the_loopback() -> None:
    begin = time.time()
    with (
        Meter() as meter,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as here,
        server.accept()[0] as there,
    ):
        here.sendall(bytes(100_000))
        here.shutdown(socket.SHUT_WR)
        while there.recv(65536):
            pass
    assert meter.between(begin, time.time()) >= 100_000


def test_the_table_and_the_targets_say_what_was_found() -> None:
    said = table({"EdgeFL": {"seconds": 1234.567}, "Flower": {"seconds": 2.0}}, {"seconds": 1})
    assert [line.split() for line in said.splitlines()] == [["seconds"], ["EdgeFL", "1,234.6"], ["Flower", "2.0"]]
    lines = judged([Target("faster", 6.0, 5.0, least=True), Target("smaller", 0.7, 0.6)]).splitlines()
    assert lines[0].endswith("at least 5.000: met")
    assert lines[1].endswith("at most  0.600: missed")


def test_a_watch_tells_the_named_process_from_those_it_started() -> None:
    hungry = "b = bytearray(60_000_000); input()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hungry!r}])"
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE) as process:
        with Watch([process.pid]) as watch:
            time.sleep(0.8)
        process.communicate(b"\n")
    assert watch.peak_bytes - watch.peak_of_roots > 60e6
