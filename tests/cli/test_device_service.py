"""The systemd unit of a device: it is valid, its command is ours, and its sandbox leaves telemetry what it reads."""

import re
import shlex
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from edgefl.cli.main import make_parser

UNIT = Path(__file__).parents[2] / "examples" / "raspberry_pi" / "edgefl-device.service"
STATE = "/var/lib/edgefl-device"


def settings() -> dict[str, list[str]]:
    """Return the settings of the unit's service, each with all of its values."""
    text = re.sub(r"\\\n", " ", UNIT.read_text(encoding="utf-8"))
    service = re.split(r"^\[(\w+)\]$", text, flags=re.MULTILINE)
    lines = service[service.index("Service") + 1].splitlines()
    found = defaultdict(list)
    for line in lines:
        if line.strip() and not line.startswith("#"):
            name, _, value = line.partition("=")
            found[name.strip()].append(value.strip())
    return found


def test_its_command_is_one_of_ours_and_writes_to_its_own_folder_alone() -> None:
    found = settings()
    assert found["StateDirectory"] == ["edgefl-device"]
    assert found["WorkingDirectory"] == ["%S/edgefl-device"]
    words = shlex.split(found["ExecStart"][0].replace("%S/edgefl-device", STATE))
    args = make_parser().parse_args(words[1:])
    assert (args.verb, args.home, args.insecure, args.key) == ("join", STATE, False, None)
    assert not any(name in found for name in ("ReadWritePaths", "BindPaths"))


def test_its_sandbox_is_closed() -> None:
    found = settings()
    for name in (
        "NoNewPrivileges",
        "PrivateTmp",
        "ProtectClock",
        "ProtectControlGroups",
        "ProtectHome",
        "ProtectHostname",
        "ProtectKernelLogs",
        "ProtectKernelModules",
        "ProtectKernelTunables",
        "LockPersonality",
        "RestrictNamespaces",
        "RestrictRealtime",
        "RestrictSUIDSGID",
    ):
        assert found[name] == ["true"], name
    assert found["ProtectSystem"] == ["strict"]
    assert found["CapabilityBoundingSet"] == [""]
    assert found["UMask"] == ["0077"]
    assert found["StateDirectoryMode"] == ["0700"]
    assert set(found["RestrictAddressFamilies"][0].split()) == {"AF_INET", "AF_INET6", "AF_UNIX"}
    assert found["SystemCallFilter"][0] == "@system-service"
    assert found["MemoryMax"]
    assert found["User"] != ["root"]


def test_telemetry_can_read_what_it_reads() -> None:
    found = settings()
    # /proc/meminfo, /proc/self/clear_refs, /proc/sys/kernel/random/boot_id, /sys: shown, if only to be read
    assert "ProcSubset" not in found
    assert not any("/sys" in value or "/proc" in value for value in found["InaccessiblePaths"])
    # vcgencmd
    assert "PrivateDevices" not in found
    assert "/dev/vcio rw" in found["DeviceAllow"]
    assert found["SupplementaryGroups"] == ["video"]
    assert "PrivateUsers" not in found  # it would take the group away
    # a worker that is out of memory must not take the agent with it; limits of its own need setrlimit
    assert found["OOMPolicy"] == ["continue"]
    assert "@resources" not in " ".join(found["SystemCallFilter"][1:])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs the Debian package systemd")
def test_systemd_accepts_it(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text(encoding="utf-8").replace("/opt/edgefl/bin/edgefl", "/bin/true"), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert rated.returncode == 0, rated.stdout[-300:]
