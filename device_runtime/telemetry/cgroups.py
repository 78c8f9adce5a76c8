"""The control groups of this process, with which a container or a service manager limits its resources.

A limit may be on the process's own group or on any above it, so callers look at all of them. Versions 1 and 2 and both
at once are supported, at their usual place below /sys/fs/cgroup. Inside a container the named group is often not
visible, but then the top of the mount is the container's own group, and the search ends there.
"""

from collections.abc import Iterator
from pathlib import Path

from device_runtime.telemetry.sysfs import ROOT, read_text

__all__ = ["groups"]


def groups(controller: str, root: Path = ROOT) -> Iterator[Path]:
    """Yield the folders of this process's groups for a controller such as 'memory', its own first, then those above."""
    mount = root / "sys/fs/cgroup"
    lines = read_text(root / "proc/self/cgroup")
    for line in (lines or "0::/").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":  # version 2; systemd's hybrid layout mounts it below
            mounts = [mount, mount / "unified"]
        elif controller in controllers.split(","):
            mounts = [mount / controllers, mount / controller]
        else:
            continue
        for folder in dict.fromkeys(mounts):
            yield from _upwards(folder, path)


def _upwards(mount: Path, path: str) -> Iterator[Path]:
    parts = [part for part in path.split("/") if part]
    if ".." in parts:  # the group is outside what this container may see
        parts = []
    for depth in range(len(parts), -1, -1):
        yield mount.joinpath(*parts[:depth])
