"""The life of a federation, as its operator sees it in a browser: real agents, a real coordinator, a real Chromium."""

import contextlib
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from edgefl.masks import full_mask
from edgefl.pairing import Pairing
from edgefl.wire import BodyKind, decode
from tests.cli.running_coordinator import Running, coordinator, joining
from tests.coordinator.browser.chromium import DESKTOP, PHONE, chromium, looking, sign_in
from tests.coordinator.browser.hand_driven import HandDriven
from tests.coordinator.test_end_to_end import profile_of
from tests.device_runtime.federation import BUNDLE, bundle

MARKUP = "<img src=x onerror=alert(1)><b>81 degrees</b>"
ROUNDS = 2
FEDERATION = f"""\
[federation]
name = "digits"
model = "{BUNDLE.name}"
seed = 3
[strategy]
name = "fedavg"
learning_rate = 0.05
[work]
epochs = 200
batch_size = 32
[rounds]
count = {ROUNDS}
deadline = 120
at_least = 2
[selection]
devices = 5
wait_for = 3
available_within = 10
[evaluation]
data = "digits"
[budget]
adapt = false
"""
FEWER_STEPS = 20 / (200 * 9)
"""`profile_of` means rounds of 20 steps; these have 200 passes over 9 batches."""
REMEMBER_STATES = """() => {
    window.statesSeen = {};
    const remember = () => document.querySelectorAll("#fleet [data-device]").forEach((row) => {
        const seen = (window.statesSeen[row.dataset.device] ??= new Set());
        seen.add(row.querySelector("[data-column=state]").textContent.trim());
    });
    new MutationObserver(remember).observe(document.getElementById("fleet"), { subtree: true, childList: true,
        characterData: true, attributes: true });
}"""
"""A device may be fast: what its row has said for a moment counts."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / BUNDLE.name).write_bytes(BUNDLE.read_bytes())
    path = tmp_path / "federation.toml"
    path.write_text(FEDERATION)
    return path


def token(server: Running, role: str = "admin") -> str:
    return (server.state / f"{role}-token").read_text().strip()


def cell(page: Page, device: str, column: str) -> Locator:
    return page.locator(f"#fleet [data-device='{device}'] [data-column={column}]")


def states(page: Page, **wanted: str) -> None:
    for device, state in wanted.items():
        expect(cell(page, device.replace("_", "-"), "state")).to_contain_text(state, ignore_case=True)


def act(page: Page, name: str) -> None:
    """Choose an action from the menu, and confirm it."""
    page.click("#menu-button")
    page.click(f"#menu-list [data-action={name}]")
    expect(page.locator(f"dialog[data-confirm={name}]")).to_be_visible()
    page.click("#dialog-go")
    expect(page.locator("#dialog")).to_be_hidden()


def has_points(page: Page, name: str, count: int) -> None:
    """Wait until a chart's last curve has so many points, by what the library drew."""
    figure = page.locator(f"figure[data-chart-name={name}]")
    figure.scroll_into_view_if_needed()
    expect(figure.locator(".main-svg").first).to_be_visible()
    page.wait_for_function(
        "([name, count]) => document.querySelector(`figure[data-chart-name=${name}] .js-plotly-plot`)"
        ".data.at(-1).x.length === count",
        arg=[name, count],
    )


def test_a_federation_from_its_start_to_its_end(browser: Browser, tmp_path: Path, file: Path) -> None:
    profiles = {number: profile_of(slowness * FEWER_STEPS) for number, slowness in ((1, 0.5), (2, 1.5), (3, 3.0))}
    with coordinator(tmp_path / "state", str(file), "--no-start") as server:
        key = server.key_of("digits")
        with looking(browser, server.url) as (page, _):
            sign_in(page, token(server))
            expect(page.locator("#federation-state")).to_have_text("created")
            expect(page.locator("#fleet-empty")).to_be_visible()
            with joining(server.url, key, tmp_path, *profiles, profiles=profiles), contextlib.ExitStack() as stack:
                expect(page.locator("#fleet-count")).to_have_text("3 of 3 devices", timeout=60_000)
                refuser, sender = (
                    stack.enter_context(HandDriven.joined(server.url, key, name)) for name in ("refuser", "sender")
                )
                expect(page.locator("#fleet-count")).to_have_text("5 of 5 devices")
                states(page, refuser="idle", sender="idle", device_1="idle", device_2="idle", device_3="idle")
                page.evaluate(REMEMBER_STATES)
                act(page, "start")
                expect(page.locator("#federation-state")).to_have_text("running")
                page.wait_for_function("() => window.statesSeen['device-1']?.has('training')")
                states(page, refuser="asked", sender="asked")
                look_at_the_first_round(page, refuser, sender)
                page.click("nav [data-view=rounds]")
                expect(page.locator("#rounds tbody tr[data-round='0']")).to_contain_text("done", timeout=60_000)
                expect(page.locator("figure[data-chart-name=accuracy] .main-svg").first).to_be_visible()
                pause_and_revoke(page)
                let_it_end(page)
            look_at_masks_and_a_device(page)
            export_the_model(page, tmp_path)


def look_at_the_first_round(page: Page, refuser: HandDriven, sender: HandDriven) -> None:
    refused, sent = refuser.task(), sender.task()
    states(page, refuser="training", sender="training")
    refuser.refuse(refused, MARKUP)
    states(page, refuser="refused")
    expect(cell(page, "refuser", "why")).to_contain_text(MARKUP)
    assert page.locator("#fleet img, #fleet b").count() == 0
    with sender.uploading(sent):
        states(page, sender="uploading")
    page.click("nav [data-view=rounds]")
    expect(page.locator("[data-progress=refused]")).to_contain_text("1")
    expect(page.locator("[data-progress=arrived]")).to_contain_text(re.compile("[1-4]"))
    expect(page.locator("#countdown")).to_contain_text(re.compile(r"\d"))
    page.click("nav [data-view=fleet]")


def pause_and_revoke(page: Page) -> None:
    act(page, "pause")
    expect(page.locator("#federation-state")).to_have_text("paused")
    page.click("nav [data-view=fleet]")
    states(page, refuser="gone", sender="gone")  # they do not call any more
    page.click("#fleet [data-device=refuser] a")
    expect(page.locator("#device-heading")).to_have_text("refuser")
    expect(page.locator("#tasks")).to_contain_text(MARKUP)
    page.click("#device-actions [data-action=revoke]")
    page.click("#dialog-go")
    page.click("nav [data-view=fleet]")
    expect(page.locator("#fleet-count")).to_have_text("4 of 4 devices")
    expect(page.locator("#fleet [data-device=refuser]")).to_have_count(0)
    act(page, "resume")


def let_it_end(page: Page) -> None:
    if cell(page, "sender", "round").inner_text() == "2":  # it is gone, and the round would wait for it for two minutes
        set_deadline(page, "5")
    expect(page.locator("#federation-state")).to_have_text("finished", timeout=90_000)
    page.click("nav [data-view=rounds]")
    for name in ("accuracy", "loss", "traffic", "time"):
        has_points(page, name, ROUNDS)
    expect(page.locator("#rounds tbody tr[data-round]")).to_have_count(ROUNDS)


def look_at_masks_and_a_device(page: Page) -> None:
    page.click("nav [data-view=masks]")
    expect(page.locator("figure[data-chart-name=layers] .main-svg").first).to_be_visible()
    expect(page.locator("#masks-plan")).to_contain_text("Bias of the average")
    page.click("nav [data-view=fleet]")
    kept = cell(page, "device-3", "kept").inner_text()
    assert 0 < float(kept.rstrip(" %")) < 100
    page.click("#fleet [data-device=device-3] a")
    tasks = page.locator("#tasks tbody tr[aria-rowindex]")
    expect(tasks).to_have_count(ROUNDS)
    has_points(page, "device-step", tasks.count())


def export_the_model(page: Page, folder: Path) -> None:
    page.click("#menu-button")
    page.click("#menu-list [data-action=export]")
    with page.expect_download() as told:
        page.click("dialog [data-export=weights]")
    told.value.save_as(folder / "model.safetensors")
    weights = decode((folder / "model.safetensors").read_bytes(), kind=BodyKind.WEIGHTS).arrays
    assert {name: array.shape for name, array in weights.items()} == dict(full_mask(bundle().graph).shapes)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def test_a_coordinator_that_was_killed_and_started_again_is_found_again(
    browser: Browser, tmp_path: Path, file: Path
) -> None:
    port = str(free_port())
    with (
        coordinator(tmp_path / "state", str(file), "--port", port) as server,
        HandDriven.joined(server.url, server.key_of("digits"), "pi-1"),
        looking(browser, server.url) as (page, seen),
    ):
        sign_in(page, token(server, "viewer"))
        expect(page.locator("#live")).to_have_attribute("data-state", "live")
        expect(page.locator("#menu")).to_be_hidden()  # who may only look has no actions
        seen.forgiven = True
        server.process.send_signal(signal.SIGKILL)
        expect(page.locator("#live")).to_have_attribute("data-state", "stale")
        expect(page.locator("#banner")).to_be_visible()
        with coordinator(tmp_path / "state", str(file), "--port", port):
            expect(page.locator("#live")).to_have_attribute("data-state", "live", timeout=10_000)
            expect(page.locator("#banner")).to_be_hidden()
            expect(page.locator("#fleet [data-device=pi-1]")).to_be_visible()
            page.reload()  # the token is kept in the session
            expect(page.locator("#fleet [data-device=pi-1]")).to_be_visible()
            page.click("#sign-out")
            expect(page.locator("#token")).to_be_visible()


def test_a_wrong_token_is_refused_and_a_key_is_shown_once(browser: Browser, tmp_path: Path, file: Path) -> None:
    with coordinator(tmp_path / "state", str(file)) as server, looking(browser, server.url) as (page, seen):
        seen.forgiven = True  # the browser notes the 401 itself
        sign_in(page, "edgefl-admin-" + "x" * 43)
        expect(page.locator("#sign-in-problem")).to_contain_text("not an admin or viewer token")
        seen.forgiven = False
        sign_in(page, token(server))
        page.click("nav [data-view=keys]")
        page.fill("#key-label", MARKUP)
        page.click("#key-form [data-action=key]")
        made = page.locator("#new-key").inner_text()
        uri = Pairing(server.url, made, "digits").page_uri()
        assert page.locator("#pairing-uri").inner_text() == uri
        assert page.locator("#join-line").inner_text() == f"EDGEFL_JOIN_URI='{uri}' edgefl join --data data.npz"
        for code in ("#qr", "#app-qr"):
            assert page.locator(code).evaluate("image => image.naturalWidth") > 50
        with HandDriven.joined(server.url, made, "pi-by-key"):
            pass
        expect(page.locator("#keys")).to_contain_text(MARKUP)
        page.click("nav [data-view=fleet]")
        expect(page.locator("#fleet [data-device=pi-by-key]")).to_be_visible()
        page.click("nav [data-view=keys]")
        expect(page.locator("#new-key")).to_have_count(0)
        deadline(page)


def set_deadline(page: Page, seconds: str) -> None:
    page.click("#menu-button")
    page.click("#menu-list [data-action=deadline]")
    page.select_option("#dialog-unit", "1")
    page.fill("#dialog-seconds", seconds)
    page.click("#dialog-go")
    expect(page.locator("#dialog")).to_be_hidden()


def deadline(page: Page) -> None:
    page.click("#menu-button")
    page.click("#menu-list [data-action=deadline]")
    page.fill("#dialog-seconds", "7")
    page.click("#dialog-cancel")
    expect(page.locator("#dialog")).to_be_hidden()
    set_deadline(page, "420")
    page.click("#menu-button")
    page.click("#menu-list [data-action=deadline]")
    expect(page.locator("#dialog-says")).to_contain_text("7 min")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_nothing_but_tables_is_wider_than_the_window(
    browser: Browser, tmp_path: Path, file: Path, size: tuple[int, int]
) -> None:
    long = "a-device-with-a-name-that-is-longer-than-most-names-are"
    with (
        coordinator(tmp_path / "state", str(file)) as server,
        HandDriven.joined(server.url, server.key_of("digits"), long),
        looking(browser, server.url, size) as (page, _),
    ):
        sign_in(page, token(server))
        for view in ("fleet", "rounds", "masks", "keys"):
            page.click(f"nav [data-view={view}]")
            expect(page.locator(f"#view-{view}")).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), view


def test_the_page_of_a_code_hands_it_to_the_app(browser: Browser, tmp_path: Path, file: Path) -> None:
    """The link holds what the address does; without a code, or with one that is not valid, there is no link."""
    with coordinator(tmp_path / "state", str(file)) as server, looking(browser, server.url) as (page, _):
        pairing = Pairing(server.url, "edgefl-key-" + "k" * 43, "digits")
        page.goto(pairing.page_uri())
        link = page.locator("#open-app")
        expect(link).to_be_visible()
        assert Pairing.parse(link.get_attribute("href") or "") == pairing
        for wrong in ("", "#", "#key=<b>", f"#key={pairing.key}&url=http://10.0.0.5", "#javascript:alert(1)"):
            page.goto("about:blank")
            page.goto(f"{server.url}/join{wrong}")
            expect(page.locator("#no-code")).to_be_visible()
            expect(link).to_be_hidden()
