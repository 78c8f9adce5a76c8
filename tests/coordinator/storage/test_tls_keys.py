"""The coordinator's own keys: made once, rotated in one step, for their user alone, and never replaced by accident."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.storage.backup import _copy_secrets
from coordinator.storage.tls_keys import locked_keys
from edgefl.errors import EdgeFLError


def pins(state: Path) -> tuple[str, str]:
    with locked_keys(state) as keys:
        return keys.current().pin, keys.next().pin


def rotate(state: Path) -> None:
    with locked_keys(state) as keys:
        keys.rotate()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    made = tmp_path / "state"
    made.mkdir(mode=0o700)
    return made


def test_keys_are_made_once_and_only_their_user_can_read_them(state: Path) -> None:
    before = os.umask(0)
    try:
        first = pins(state)
    finally:
        os.umask(before)
    assert pins(state) == first
    assert first[0] != first[1]
    assert (state / "tls").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (state / "tls").iterdir()} == {0o600}


def test_a_rotation_makes_the_next_key_current(state: Path) -> None:
    first = pins(state)
    rotate(state)
    second = pins(state)
    assert second[0] == first[1]
    assert second[1] not in first


def test_the_key_before_stays_for_workers_that_use_it_and_older_ones_go(state: Path) -> None:
    for _ in range(3):
        rotate(state)
    assert sorted(path.name for path in (state / "tls").glob("key-*")) == ["key-3.pem", "key-4.pem", "key-5.pem"]


@pytest.mark.parametrize("survivors", [("key-1.pem",), ("key-1.pem", "current"), ("key-1.pem", "key-2.pem", "current")])
def test_a_start_that_was_interrupted_goes_on_with_the_keys_that_exist(state: Path, survivors: tuple[str, ...]) -> None:
    current, following = pins(state)
    for path in (state / "tls").iterdir():
        if path.name not in survivors:
            path.unlink()
    again = pins(state)
    assert again[0] == current
    assert (again[1] == following) == ("key-2.pem" in survivors)


def test_a_rotation_that_was_interrupted_can_be_repeated(state: Path) -> None:
    first = pins(state)
    with locked_keys(state) as keys:
        keys._existing_or_new(3)  # killed before `current` was written
    assert pins(state) == first
    rotate(state)
    assert pins(state)[0] == first[1]


def test_processes_that_start_at_once_agree(state: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from coordinator.storage.tls_keys import locked_keys\n"
        "with locked_keys(Path(sys.argv[1])) as keys: print(keys.current().pin, keys.next().pin)"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", script, str(state)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert len({process.communicate(timeout=60)[0] for process in started}) == 1


def test_a_damaged_key_is_an_error_and_stays(state: Path) -> None:
    pins(state)
    for content in (b"", b"not a key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"):
        (state / "tls" / "key-1.pem").write_bytes(content)
        with pytest.raises(EdgeFLError, match=r"key-1\.pem is not a private key"):
            pins(state)
        assert (state / "tls" / "key-1.pem").read_bytes() == content
    (state / "tls" / "current").write_text("one")
    with pytest.raises(EdgeFLError, match="number of a key"):
        pins(state)


def test_links_are_not_followed(state: Path, tmp_path: Path) -> None:
    pins(state)
    elsewhere = tmp_path / "elsewhere"
    (state / "tls" / "key-1.pem").rename(elsewhere)
    (state / "tls" / "key-1.pem").symlink_to(elsewhere)
    with pytest.raises(EdgeFLError, match="links are not followed"):
        pins(state)
    (state / "tls" / "key-1.pem").unlink()
    (state / "tls" / "key-1.pem").symlink_to(tmp_path / "nowhere")
    with pytest.raises(EdgeFLError):
        pins(state)
    assert not (tmp_path / "nowhere").exists(), "nothing is made at the end of a link"
    (state / "tls").rename(tmp_path / "tls")
    (state / "tls").symlink_to(tmp_path / "tls")
    with pytest.raises(EdgeFLError, match="is not a folder"):
        pins(state)


def test_the_lock_is_no_way_to_another_file(state: Path, tmp_path: Path) -> None:
    pins(state)
    (state / "tls" / "lock").unlink()
    (state / "tls" / "lock").symlink_to(tmp_path / "nowhere")
    with pytest.raises(EdgeFLError, match="cannot be opened"):
        pins(state)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["key-1.pem", "."])
def test_a_key_that_others_can_read_is_not_used(state: Path, name: str) -> None:
    pins(state)
    (state / "tls" / name).chmod(0o755)
    with pytest.raises(EdgeFLError, match="others can open it"):
        pins(state)


def test_a_backup_holds_the_keys(state: Path, tmp_path: Path) -> None:
    rotate(state)
    target = tmp_path / "backup"
    target.mkdir(mode=0o700)
    for _ in range(2):
        _copy_secrets(state, target)
    assert pins(target) == pins(state)
    assert (target / "tls" / "key-2.pem").stat().st_mode & 0o777 == 0o600
