"""Pictures of every view of the coordinator's page, of a real federation: light and dark, on a desk and on a phone.

    python -m tests.coordinator.browser.pictures FOLDER

Five agents with different memory train on digits; a sixth device refuses, and a seventh does not fetch its task. What
they can do is measured here first.
"""

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from edgefl.masks import leading_channels
from edgefl.planning import predict
from edgefl.values import DeviceProfile, loads
from tests.cli.running_coordinator import Running, coordinator, joining
from tests.coordinator.browser.chromium import DESKTOP, PHONE, chromium, looking, sign_in
from tests.coordinator.browser.hand_driven import HandDriven
from tests.device_runtime.federation import BUNDLE, bundle

_ROUNDS = 12
_FEDERATION = f"""\
[federation]
name = "digits"
model = "{BUNDLE.name}"
seed = 3
[strategy]
name = "fedavg"
frozen = "planned"
learning_rate = 0.05
[work]
epochs = 50
batch_size = 32
[rounds]
count = 60
deadline = 300
at_least = 2
[selection]
devices = 7
wait_for = 5
available_within = 20
[evaluation]
data = "digits"
[budget]
adapt = false
"""
_WIDTHS = (1.0, 0.8, 0.6, 0.45, 0.3)
"""Of the submodels that the devices have memory for."""


def main(folder: Path) -> None:
    """Make the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        home = Path(name)
        (home / BUNDLE.name).write_bytes(BUNDLE.read_bytes())
        (home / "federation.toml").write_text(_FEDERATION)
        profiles = dict(enumerate(_profiles(home), start=1))
        with coordinator(home / "state", str(home / "federation.toml")) as server:
            key = server.key_of("digits")
            with joining(server.url, key, home, *profiles, profiles=profiles):
                _wait_for_rounds(browser, server)
                with (
                    HandDriven.joined(server.url, key, "balcony") as hot,
                    HandDriven.joined(server.url, key, "cellar"),
                ):
                    hot.refuse(hot.task(), "81 degrees, and 75 are allowed")
                    for size, place in ((DESKTOP, "desktop"), (PHONE, "phone")):
                        for scheme in ("light", "dark"):
                            _pictures(browser, server, folder, size, f"{place}-{scheme}", scheme)


def _profiles(home: Path) -> list[DeviceProfile]:
    """Measure this machine, and pretend that it has less and less memory."""
    file = home / "profile.json"
    subprocess.run(
        [sys.executable, "-m", "edgefl", "profile", "--seconds", "10", "--threads", "1", "--out", str(file)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    measured, graph = loads(DeviceProfile, file.read_bytes()), bundle().graph
    found = []
    for width in _WIDTHS:
        needed = predict(measured, leading_channels(graph, width).cost, batch=32, steps=450).peak_bytes
        assert needed is not None
        found.append(
            replace(
                measured,
                device_name=f"here, {needed / 2**20:.0f} MiB free",
                memory_free_bytes=needed,
                memory_total_bytes=max(needed, measured.memory_total_bytes),
            )
        )
    return found


def _token(server: Running) -> str:
    return (server.state / "admin-token").read_text().strip()


def _wait_for_rounds(browser: Browser, server: Running) -> None:
    with looking(browser, server.url) as (page, _):
        sign_in(page, _token(server))
        page.click("nav [data-view=rounds]")
        row = page.locator(f"#rounds tbody tr[data-round='{_ROUNDS - 1}']")
        expect(row).to_contain_text("done", timeout=300_000)


def _pictures(browser: Browser, server: Running, folder: Path, size: tuple[int, int], name: str, scheme: str) -> None:
    with looking(browser, server.url, size, color_scheme=scheme, device_scale_factor=1) as (page, _):
        page.screenshot(path=folder / f"sign-in-{name}.png")
        sign_in(page, _token(server))
        for view in ("fleet", "rounds", "masks", "keys"):
            page.click(f"nav [data-view={view}]")
            _settle(page)
            page.screenshot(path=folder / f"{view}-{name}.png", full_page=view != "fleet")
        page.click("nav [data-view=fleet]")
        page.click("#fleet [data-device=device-3] a")
        _settle(page)
        page.screenshot(path=folder / f"device-{name}.png", full_page=True)
        page.click("#menu-button")
        page.click("#menu-list [data-action=deadline]")
        page.screenshot(path=folder / f"dialog-{name}.png")


def _settle(page: Page) -> None:
    """Let every chart be drawn, also those that are further down."""
    time.sleep(1.0)
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    time.sleep(0.7)
    page.evaluate("window.scrollTo(0, 0)")
    time.sleep(0.3)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
