"""The coordinator's page with a large fleet, in headless Chromium: load time and filter time.

    python -m benchmarks.page [--devices 5000] [--turns 5]

A coordinator in this process has a federation of so many devices, each with a task that it has done; the browser is
Debian's. Printed are medians, in milliseconds:

    first paint     from asking for the page, with the token in the session, to the first content
    first rows      to the first rows of the table
    keystroke       from a letter in the filter to the painted rows that fit it
    sort            from a click on a heading to the painted rows
"""

import argparse
import json
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import Browser, Page
from sqlalchemy import insert

from benchmarks.peers.table import load_average
from coordinator.federations.lifecycle import Verb, move
from coordinator.federations.tokens import OperatorRole
from coordinator.rounds.context import Context
from coordinator.storage.records import Round, Task, TaskState
from coordinator.storage.row_mapping import fields_of
from coordinator.storage.tables import devices, rounds, tasks
from edgefl.values import LocalResult, dumps
from tests.coordinator.browser.chromium import chromium, looking, sign_in
from tests.coordinator.http.site import Site, serving
from tests.values import samples

__all__ = ["fill", "main"]

_PAINTED = """([selector, text]) => new Promise((done) => {
    const field = document.querySelector(selector);
    const began = performance.now();
    if (text === null) {
        field.click();
    } else {
        field.value = text;
        field.dispatchEvent(new Event("input", { bubbles: true }));
    }
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began)));
})"""
_WORDS = ("p", "pi", "pi-", "pi-4", "pi-42", "pi-4", "pi-", "pi", "p", "")


def main() -> None:
    """Measure, and print."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--devices", type=int, default=5000)
    reader.add_argument("--turns", type=int, default=5)
    args = reader.parse_args()
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as site, chromium() as browser:
        site.federation()
        move(site.context, "digits", Verb.ABORT)  # nobody shall go on with rounds that never were
        fill(site.context, args.devices)
        seen = [_turn(site, browser, args.devices) for _ in range(args.turns)]
    print(f"{args.devices:,} devices, {args.turns} turns, {load_average()}")
    for name in seen[0]:
        values = [turn[name] for turn in seen]
        print(f"{name:<12} {statistics.median(values):7.0f} ms   ({min(values):.0f} to {max(values):.0f})")


def fill(context: Context, count: int) -> None:
    """Put devices into the store, with a round in which each has done a task."""
    now, result = context.now(), json.loads(dumps(_RESULT))
    opened = Round(federation="digits", number=0, model="sha256:0", opened_at=now, deadline_at=now + 3600)
    known = context.store.devices.of("digits")[0]
    fleet, work = [], []
    for number in range(count):
        name, task = f"pi-{number:05d}", f"task-{number}"
        fleet.append(
            fields_of(
                replace(
                    known,
                    id=name,
                    enrolment_id=name,
                    token_hash=name,
                    seen_at=now - number % 300,
                    done=1,
                    samples=100 + number,
                    last_task=task,
                )
            )
        )
        work.append(
            fields_of(
                Task(
                    id=task,
                    federation="digits",
                    round=0,
                    device=name,
                    plan=_PLAN,
                    created_at=now,
                    handed_at=now,
                    ended_at=now,
                    state=TaskState.REFUSED if number % 7 == 0 else TaskState.DONE,
                    result=None if number % 7 == 0 else json.dumps(result | {"loss": 1 + number / count}),
                    refusal=_REFUSAL if number % 7 == 0 else None,
                    kept_fraction=0.1 + 0.9 * number / count,
                    trained_fraction=0.1,
                )
            )
        )
    database = context.store._database
    database.write(
        lambda connection: (
            connection.execute(insert(rounds), [fields_of(opened)]),
            connection.execute(insert(devices), fleet),
            connection.execute(insert(tasks), [{**row, "body_kept": False} for row in work]),
            None,
        )[-1]
    )


def _turn(site: Site, browser: Browser, count: int) -> dict[str, float]:
    with looking(browser, site.url) as (page, _):
        sign_in(page, site.tokens[OperatorRole.VIEWER])
        page.wait_for_selector("#fleet [data-device]")
        page.reload()
        page.wait_for_selector("#fleet [data-device]")
        rows = page.evaluate("performance.now()")
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        assert f"{count + 1:,}" in page.inner_text("#fleet-count")
        keys = [_painted(page, "#filter", word) for word in _WORDS]
        sorts = [_painted(page, f"#fleet th[data-column={name}] button", None) for name in ("state", "kept", "id")]
    return {
        "first paint": paint,
        "first rows": rows,
        "keystroke": statistics.median(keys),
        "worst key": max(keys),
        "sort": statistics.median(sorts),
    }


def _painted(page: Page, selector: str, text: str | None) -> float:
    return float(page.evaluate(_PAINTED, [selector, text]))


_RESULT: LocalResult = samples.RESULT
_PLAN = dumps(samples.PLAN)
_REFUSAL = dumps(samples.REFUSAL)


if __name__ == "__main__":
    main()
