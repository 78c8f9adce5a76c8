"""A folder in which the documents' commands work: what a text presumes is there before the command that needs it.

Files are provided when a command first names them and nothing before has made them. A coordinator is started when it is
needed, with a federation `digits` (two devices have done a round), one that may be ended, and one for a device alone.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from edgefl.artifacts.bundle import read_bundle, write_bundle
from edgefl.artifacts.submodel import make_submodel
from edgefl.cli.main import main
from edgefl.masks import full_mask, leading_channels
from edgefl.values import dumps
from tests.cli.running_coordinator import Running, coordinator, joining, write_federation
from tests.device_runtime.federation import BUNDLE, digits
from tests.documents.commands import ROOT
from tests.values.samples import PROFILE

__all__ = ["World", "join", "provide", "serve"]

_SIMULATED = "--model digits_mlp --devices 2 --rounds 1 --most-steps 1 --workers 1 --quiet"


@dataclass(frozen=True)
class World:
    """A coordinator that runs."""

    running: Running
    solo_key: str

    @property
    def environment(self) -> dict[str, str]:
        """What tells `edgefl fed` and `edgefl join` of it."""
        token = (self.running.state / "admin-token").read_text().strip()
        return {"EDGEFL_URL": self.running.url, "EDGEFL_ADMIN_TOKEN": token, "EDGEFL_JOIN_KEY": self.solo_key}

    @classmethod
    @contextlib.contextmanager
    def begun(cls, folder: Path) -> Iterator["World"]:
        """Start the coordinator, and let two devices do a round."""
        files = [write_federation(folder, name, rounds=50) for name in ("digits", "ended", "solo")]
        alone = files[2].read_text().replace("at_least = 2", "at_least = 1").replace(" = 2\nwait_for = 2", " = 1")
        files[2].write_text(alone.replace('"60 s"', '"2 s"'))  # devices leave after a task, and are not waited for
        with coordinator(folder / "state", *map(str, files)) as running:
            world = cls(running, running.key_of("solo"))
            with joining(running.url, running.key_of("digits"), folder, 1, 2):
                world.wait_for_a_round()
            yield world

    def key_id(self) -> str:
        """Return the id of a join key of the federation `digits`."""
        return str(self._get("/v1/federations/digits/keys")["keys"][0]["id"])

    def wait_for_a_round(self) -> None:
        """Wait until the federation `digits` has a model."""
        until = time.monotonic() + 60
        while not self._get("/v1/federations/digits")["rounds_done"]:
            assert time.monotonic() < until, "no round was done in a minute"
            time.sleep(0.1)

    def _get(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.environment['EDGEFL_ADMIN_TOKEN']}"}
        return httpx.get(self.running.url + path, headers=headers).json()


def provide(word: str, folder: Path) -> None:
    """Make what a word of a command names, if it is not there and a document may presume it."""
    path = folder / word
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if word in ("pi.json", "phone.json"):
        path.write_text(dumps(PROFILE), encoding="utf-8")
    elif word == "mine.npz":
        train, test = digits().train, digits().test
        np.savez(
            path,
            x=train.features[:200],
            y=train.labels[:200],
            x_test=test.features[:50],
            y_test=test.labels[:50],
        )
    elif word == "exported/cnn4":
        write_bundle(read_bundle(BUNDLE), path)
    elif word in ("dense.onnx", "sparse.onnx"):
        bundle = read_bundle(BUNDLE)
        mask = full_mask(bundle.graph) if word == "dense.onnx" else leading_channels(bundle.graph, 0.5)
        path.write_bytes(make_submodel(bundle, mask).inference_model)
    elif word.startswith("runs/") and "." not in word:
        assert main(["simulate", *_SIMULATED.split(), "--out", str(path)]) == 0
    elif word.startswith(("examples/", "tests/")) and (ROOT / word).is_file():
        shutil.copy(ROOT / word, path)
        if word.endswith(".toml"):
            shutil.copy(BUNDLE, path.parent / "cnn.zip")


def join(words: Sequence[str], world: World, folder: Path) -> None:
    """Let a device of its own process do a task."""
    environment = os.environ | world.environment | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert ": accepted" in done.stderr, done.stderr


def serve(words: Sequence[str], folder: Path) -> None:
    """Start a coordinator as a document says, wait until it answers, and stop it."""
    shutil.rmtree(folder / "served", ignore_errors=True)
    process = subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        assert httpx.get(json.loads(line)["url"] + "/healthz").json() == {"status": "ok"}
    finally:
        process.terminate()
        process.communicate(timeout=20)
