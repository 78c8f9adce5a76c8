"""One machine in two federations of two real coordinators, without any --home."""

import os
import subprocess
import sys
from pathlib import Path

from edgefl.cli.main import main
from edgefl.values import dumps
from tests.cli.running_coordinator import coordinator, write_federation
from tests.values.samples import PROFILE

ALONE = (("at_least = 2", "at_least = 1"), ("devices = 2", "devices = 1"), ("wait_for = 2", "wait_for = 1"))


def federation(folder: Path, name: str) -> str:
    folder.mkdir()
    path = write_federation(folder, name, rounds=1)
    text = path.read_text(encoding="utf-8")
    for before, after in ALONE:
        text = text.replace(before, after)
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_machine_joins_two_federations_and_is_one_device_in_both(tmp_path: Path) -> None:
    user = tmp_path / "user"
    user.mkdir()
    profile = tmp_path / "profile.json"
    profile.write_text(dumps(PROFILE), encoding="utf-8")
    paths = [federation(tmp_path / name, name) for name in ("first", "second")]
    options = ["--data", "digits", "--client", "1/4", "--threads", "1", "--profile", str(profile)]
    with (
        coordinator(tmp_path / "state-1", paths[0]) as one,
        coordinator(tmp_path / "state-2", paths[1]) as two,
    ):
        joined = [
            subprocess.Popen(
                [sys.executable, "-m", "edgefl", "join", running.url, *options],
                env=os.environ | {"HOME": str(user), "EDGEFL_JOIN_KEY": running.key_of(name)},
                stderr=subprocess.PIPE,
                text=True,
            )
            for running, name in ((one, "first"), (two, "second"))
        ]
        said = [device.communicate(timeout=120)[1] for device in joined]
    for device, text in zip(joined, said, strict=True):
        assert device.returncode == 0, text
        assert ": accepted" in text
        assert "the federation is over" in text
    homes = sorted((user / ".edgefl" / "federations").iterdir())
    assert len(homes) == 2
    assert all((home / "identity.json").exists() and not (home / "usage.json").exists() for home in homes)
    assert (user / ".edgefl" / "usage.json").exists()
    assert (user / ".edgefl").stat().st_mode & 0o077 == 0
    again = os.environ | {"HOME": str(user)}
    words = [sys.executable, "-m", "edgefl", "predict", "--data", "digits"]
    unclear = subprocess.run(words, env=again, capture_output=True, text=True, timeout=60)
    assert unclear.returncode == 1
    assert "this device is in several federations" in unclear.stderr
    assert "Say which with --home." in unclear.stderr
    assert main([*words[3:], "--home", str(homes[0]), "--first", "2"]) == 0
