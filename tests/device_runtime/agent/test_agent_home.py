"""The agent's home is its user's alone, whatever the umask, from the moment that each file exists."""

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from device_runtime.agent.agent_home import AgentHome, Usage
from edgefl.artifacts.artifact_store import PRIVATE, ArtifactStore, write_atomically
from edgefl.errors import EdgeFLError
from edgefl.masks import full_mask
from tests.device_runtime.agent.test_agent import QUICK, joined
from tests.device_runtime.coordinator import Coordinator, tasks
from tests.device_runtime.federation import bundle


@pytest.fixture(params=[0o000, 0o022], ids=["umask 000", "umask 022"], autouse=True)
def umask(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = os.umask(request.param)
    monkeypatch.setattr("edgefl.artifacts.artifact_store._UMASK", request.param)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> dict[str, str]:
    """Return what others than the owner may read, write or enter, with its mode."""
    places = [folder, *folder.rglob("*")]
    return {str(place): oct(mode) for place in places if (mode := stat.S_IMODE(place.lstat().st_mode)) & 0o077}


def test_everything_that_an_agent_writes_is_its_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, seen = tmp_path / "new" / "home", dict[str, str]()
    replace = Path.replace

    def watching(self: Path, target: Any) -> Path:
        seen.update(open_to_others(home))  # temporary files too, and what is removed again
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", watching)
    coordinator = Coordinator()
    tasks(coordinator, [full_mask(bundle().graph)] * 2, work=QUICK)
    joined(home, coordinator).run(threading.Event())
    assert len(coordinator.results) == 2
    assert seen == {}
    assert open_to_others(tmp_path / "new") == {}
    names = {place.name for place in home.rglob("*")}
    assert names >= {"identity.json", "usage.json", "personal.safetensors", "content"}


def test_an_existing_home_is_tightened_at_the_start(tmp_path: Path) -> None:
    for name in ("identity.json", "usage.json", "personal/personal.safetensors", "cache/content/ab/abcd", "task/x"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"{}")
        file.chmod(0o644)
        file.parent.chmod(0o755)
    other = tmp_path / "start.sh"  # somebody made their own folder the home
    other.write_text("#!/bin/sh")
    other.chmod(0o755)
    AgentHome(tmp_path)
    assert set(open_to_others(tmp_path)) == {str(other)}
    assert stat.S_IMODE(other.stat().st_mode) == 0o755


def test_what_another_user_planted_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir(mode=0o755)
    home = tmp_path / "home"
    home.mkdir()
    (home / "personal").symlink_to(target)
    AgentHome(home)  # the owner's own link to another disk
    assert stat.S_IMODE(target.stat().st_mode) == 0o755  # what a link leads to is not changed
    monkeypatch.setattr("device_runtime.agent.agent_home._user", lambda: os.geteuid() + 1)
    with pytest.raises(EdgeFLError, match="belongs to another user"):
        AgentHome(home)


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    home = AgentHome(tmp_path / "home")
    (home.folder / "lock").symlink_to(tmp_path / "victim")
    with pytest.raises(EdgeFLError, match="lock"):
        home.lock()
    assert not (tmp_path / "victim").exists()


def test_a_home_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(EdgeFLError, match="cannot be used as a device's home"):
        AgentHome(tmp_path / "home")


def test_a_private_file_and_the_folders_made_for_it_are_private_at_once(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a" / "b" / "file", b"x", mode=PRIVATE)
    ArtifactStore(tmp_path / "c" / "store", mode=PRIVATE).put(b"y")
    assert open_to_others(tmp_path / "a") == {}
    assert open_to_others(tmp_path / "c") == {}


def test_usage_can_be_saved_and_read_back(tmp_path: Path) -> None:
    home = AgentHome(tmp_path)
    home.save_usage(Usage("2026-05-01", 1.5, 7))
    assert home.usage() == Usage("2026-05-01", 1.5, 7)


def test_what_a_killed_agent_was_writing_is_removed_at_the_next_start(tmp_path: Path) -> None:
    AgentHome(tmp_path).save_usage(Usage("2026-01-01", 1.5, 2**40))
    for place in (tmp_path, tmp_path / "personal", tmp_path / "task"):
        place.mkdir(exist_ok=True)
        (place / ".writing-abc").write_bytes(b"half of it")
    mine = tmp_path / "photos" / ".writing-abc"
    mine.parent.mkdir()
    mine.touch()
    home = AgentHome(tmp_path)
    home.lock()
    assert list(tmp_path.rglob(".writing-*")) == [mine]
    assert home.usage().traffic_bytes == 2**40
