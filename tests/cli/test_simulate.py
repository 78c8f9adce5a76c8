"""`edgefl simulate` as a user runs it: what it prints, what it leaves, and that engines agree to the bit."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edgefl.artifacts.bundle import read_bundle
from edgefl.cli.simulate_progress import summary_lines
from edgefl.local_rules.base_networks import joined_networks
from edgefl.simulation.run_folder import read_run
from edgefl.wire import decode_mask

SMALL = ("--model", "digits_mlp", "--samples", "300", "--devices", "4", "--rounds", "2", "--set", "learning_rate=0.1")
NARROW = ("--strategy", "heterofl", "--set", "levels=0.5,0.25", "--set", "fine_tune_epochs=1")
HEAD = ("--rounds", "3", "--set", "exact_head=logistic", "--set", "head_rounds=1", "--set", "personal_head=prior")


def simulate(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "edgefl", "simulate", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("simulate") / "run"
    done = simulate(*SMALL, *NARROW, "--workers", "1", "--json", "--out", str(out))
    assert not done.returncode, done.stderr
    return out, json.loads(done.stdout)


def test_a_run_leaves_everything_in_its_folder(local: tuple[Path, dict[str, Any]]) -> None:
    out, told = local
    run = read_run(out)
    assert run.summary is not None
    assert told["accuracy"] == run.summary.accuracy
    assert [result.number for result in run.rounds] == [0, 1]
    assert sum(one.up_bytes for result in run.rounds for one in result.devices) == told["up_bytes"]
    assert {row.device_id for row in run.fleet} == {part.device_id for part in run.parts}
    assert run.personal is not None
    assert set(run.personal.after) == {row.device_id for row in run.fleet}
    assert sum(sum(row.labels) for row in run.fleet) < 300, "devices keep samples to validate and test with"
    assert {path.name for path in out.iterdir()} >= {"request.json", "model.zip", "weights.safetensors", "masks"}


def test_rounds_are_shown_as_they_end_and_the_summary_in_words(tmp_path: Path) -> None:
    done = simulate(*SMALL, "--workers", "1", "--out", str(tmp_path / "run"))
    assert not done.returncode, done.stderr
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["round 1/2", "round 2/2"]
    assert "4 of 4 devices, accuracy" in done.stderr
    assert "estimated by device class" in done.stdout
    assert done.stdout.splitlines()[-1] == f"the run is in {tmp_path / 'run'}"


@pytest.mark.parametrize(
    "engine",
    [("--workers", "2"), ("--over", "http", "--workers", "2"), ("--engine", "ray", "--workers", "2")],
    ids=["processes", "http", "ray"],
)
def test_every_engine_ends_with_the_same_weights(
    engine: tuple[str, ...], local: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    done = simulate(*SMALL, *NARROW, *engine, "--json", "--out", str(tmp_path / "run"))
    assert not done.returncode, done.stderr
    first, told = local
    assert (tmp_path / "run" / "weights.safetensors").read_bytes() == (first / "weights.safetensors").read_bytes()
    assert (tmp_path / "run" / "held.safetensors").read_bytes() == (first / "held.safetensors").read_bytes()
    again = json.loads(done.stdout)
    personal = ("personal_before", "personal_after", "kept_fraction")
    for figure in ("accuracy", "judged_fraction", "updates", *personal):
        assert again[figure] == told[figure], figure
    assert again["loss"] == pytest.approx(told["loss"], rel=1e-12)  # its sum may be in another order


def test_an_exact_head_has_the_same_bits_over_http(tmp_path: Path) -> None:
    ends = []
    for engine in (("--workers", "1"), ("--over", "http", "--workers", "2")):
        out = tmp_path / engine[0]
        done = simulate(*SMALL, *NARROW, *HEAD, *engine, "--json", "--out", str(out))
        assert not done.returncode, done.stderr
        told = json.loads(done.stdout)
        ends.append(((out / "weights.safetensors").read_bytes(), told["personal_after"], told["updates"]))
    assert ends[0] == ends[1]
    assert ends[0][2] == 12


def test_the_summary_says_which_part_was_judged(local: tuple[Path, dict[str, Any]]) -> None:
    out, told = local
    run = read_run(out)
    mask = decode_mask((out / "held.safetensors").read_bytes(), read_bundle(out / "model.zip").graph)
    assert 0 < told["judged_fraction"] == mask.cost.parameters / mask.graph.parameters < 0.6
    assert run.summary is not None
    lines = summary_lines(run.request, run.summary)
    assert f"test samples with {100 * told['judged_fraction']:.1f}% of its parameters" in lines[1]
    whole = summary_lines(run.request, replace(run.summary, judged_fraction=1.0))
    assert whole[1].endswith("of the test samples")


def test_a_run_of_several_networks_leaves_the_part_that_was_judged(tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("--model", "digits_cnn", "--rounds", "1", "--strategy", "split_mix", "--set", "base_networks=2")
    done = simulate(*SMALL, *words, "--workers", "1", "--json", "--out", str(out))
    assert not done.returncode, done.stderr
    mask = decode_mask((out / "held.safetensors").read_bytes(), read_bundle(out / "model.zip").graph)
    assert mask.digest == joined_networks(mask.graph, [0, 1], 2).digest
    assert json.loads(done.stdout)["judged_fraction"] == mask.cost.parameters / mask.graph.parameters < 1


@pytest.mark.thorough
def test_a_strategy_that_goes_on_with_own_models_is_the_same_on_ray(tmp_path: Path) -> None:
    ends = []
    for engine in (("--workers", "1"), ("--engine", "ray", "--workers", "2")):
        out = str(tmp_path / engine[0])
        done = simulate("--strategy", "local", *SMALL, "--per-round", "3", *engine, "--json", "--out", out)
        assert not done.returncode, done.stderr
        ends.append(json.loads(done.stdout)["personal_after"])
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--model", "nothing"), "no model 'nothing'"),
        (("--data", "nothing"), "nothing"),
        (("--strategy", "nothing"), "nothing"),
        (("--fleet", "pi9"), "pi9"),
        (("--rounds", "0"), "rounds"),
        (("--workers", "0"), "--workers is 0"),
        (("--deadline", "5 MB"), "--deadline"),
        (("--set", "speed"), "is not a setting"),
        (("--model", "digits_mlp", "--data", "fashion-mnist", "--samples", "0"), "samples"),
        (("--over", "http", "--trace", "none.csv"), "none.csv"),
    ],
)
def test_a_wrong_word_is_explained(words: tuple[str, ...], says: str, tmp_path: Path) -> None:
    done = simulate(*words, "--out", str(tmp_path / "run"))
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert "bug in EdgeFL" not in done.stderr


def test_a_folder_that_holds_something_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    done = simulate(*SMALL, "--out", str(tmp_path))
    assert done.returncode == 1
    assert "exists already" in done.stderr
