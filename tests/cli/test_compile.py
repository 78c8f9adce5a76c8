"""`edgefl compile` against a coordinator: a worker that is killed costs nothing, and what it makes is used."""

import contextlib
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.federations import programs
from coordinator.storage.records import ProgramRecord, ProgramState
from edgefl.cli.compile import _bundle, _ladder
from edgefl.cli.compile_worker import Work, Worker
from edgefl.cli.fed.api import Api, CoordinatorUnreachableError
from edgefl.cli.main import main
from edgefl.errors import ExportError
from edgefl.federation.settings import ProgramSettings, RoundSettings, SelectionSettings
from edgefl.values import ProgramSpec, dumps
from tests.cli.compiling_worker import QuickCompilers
from tests.coordinator.fleet import enrol, running, settings_of
from tests.coordinator.http.site import Site, serving
from tests.coordinator.programs import EXECUTORCH, ladder, specs_of
from tests.coordinator.stage import until

LEASE = 2.0
ROOT = Path(__file__).parents[2]
FULL = specs_of((1.0,), batch=settings_of().work.batch_size, cuts=["0"])[0]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(programs, "LEASE_SECONDS", LEASE)
    with serving(tmp_path) as running_site:
        yield running_site


@pytest.fixture
def token_file(site: Site, tmp_path: Path) -> str:
    path = tmp_path / "token"
    path.write_text(site.admin_token)
    return str(path)


def federation(site: Site, **changes: object) -> None:
    """A federation with one device, whose engine runs programs."""
    known = running(
        site.context,
        rounds=RoundSettings(count=3, deadline=600),
        selection=SelectionSettings(devices=1, available_within=600),
        **changes,
    )
    device = enrol(site.context, known, "pi")
    site.context.store.devices.set_capabilities(device.id, dumps(EXECUTORCH))
    site.services.driver.wake()


def program(site: Site, spec: ProgramSpec = FULL) -> ProgramRecord | None:
    return site.context.store.programs.get("digits", spec.key)


def state(site: Site) -> ProgramState | None:
    found = program(site)
    return None if found is None else found.state


@contextlib.contextmanager
def worker_process(site: Site, seconds: float) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "tests.cli.compiling_worker", site.url, site.admin_token, "digits", str(seconds)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def worker(site: Site, api: Api, *, seconds: float = 0.0) -> Worker:
    return Worker(api, "digits", QuickCompilers("here", seconds), 1, 0.05, once=True, name="here")


def test_a_worker_that_is_killed_costs_nothing_another_takes_over_and_the_next_round_uses_it(site: Site) -> None:
    federation(site)
    until(lambda: state(site) is ProgramState.WANTED, 30)
    assert site.context.store.rounds.latest("digits") is None
    with worker_process(site, seconds=1000) as first:
        until(lambda: state(site) is ProgramState.COMPILING, 60)
        held = program(site)
        assert held is not None
        until(lambda: (now := program(site)) is not None and now.lease_until != held.lease_until, 30)  # it renews
        with worker_process(site, seconds=0) as second:
            until(lambda: second.poll() is None and _others_are_ready(site), 60)
            assert state(site) is ProgramState.COMPILING  # the second one does not take what the first one holds
            first.send_signal(signal.SIGKILL)
            until(lambda: state(site) is ProgramState.READY, 30)
            made = program(site)
            assert made is not None
            assert made.worker != held.worker
            until(lambda: site.context.store.rounds.latest("digits") is not None, 30)
            second.send_signal(signal.SIGTERM)
            assert second.wait(30) == 0
    (task,) = site.context.store.tasks.of("digits")
    assert task.rung is not None
    assert task.rung.startswith("1 all layers")


def _others_are_ready(site: Site) -> bool:
    """Return whether everything is compiled but what the first worker holds."""
    return all(
        one.state is ProgramState.READY for one in site.context.store.programs.of("digits") if one.key != FULL.key
    )


def test_a_worker_that_is_told_to_stop_gives_its_program_back_at_once(site: Site) -> None:
    federation(site)
    until(lambda: state(site) is ProgramState.WANTED, 30)
    with worker_process(site, seconds=1000) as process:
        until(lambda: state(site) is ProgramState.COMPILING, 60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert state(site) is ProgramState.WANTED


def test_what_was_compiled_while_the_coordinator_was_away_is_delivered_when_it_is_back(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    federation(site)
    until(lambda: state(site) is ProgramState.WANTED, 30)
    failures = iter(range(3))
    monkeypatch.setattr("edgefl.cli.compile_worker._pauses", lambda: iter([0.01] * 100))
    with Api(site.url, site.admin_token) as api:
        send = api.send

        def away(path: str, data: bytes, kind: str) -> object:
            if next(failures, None) is not None:
                raise CoordinatorUnreachableError("the coordinator cannot be reached", fix="Wait.")
            return send(path, data, kind)

        monkeypatch.setattr(api, "send", away)
        worker(site, api).run()
    assert state(site) is ProgramState.READY


def test_a_program_that_cannot_be_compiled_is_reported_and_the_others_go_on(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    federation(site)
    until(lambda: state(site) is ProgramState.WANTED, 30)
    made = QuickCompilers._made

    def refuse(self: QuickCompilers, spec: ProgramSpec) -> object:
        if spec == FULL:
            raise ExportError("aten.foo\n is not supported", fix="Report it.")
        return made(self, spec)

    monkeypatch.setattr(QuickCompilers, "_made", refuse)
    with Api(site.url, site.admin_token) as api:
        working = worker(site, api)
        working.run()
    found = program(site)
    assert found is not None
    assert (found.state, found.tries, found.reason) == (ProgramState.FAILED, 3, "aten.foo  is not supported")
    assert working.failed == 3
    assert _others_are_ready(site)


def test_a_program_that_the_coordinator_does_not_take_is_reported_and_the_others_go_on(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    federation(site)
    until(lambda: state(site) is ProgramState.WANTED, 30)
    made = QuickCompilers._made

    def spoil(self: QuickCompilers, spec: ProgramSpec) -> object:
        program, file = made(self, spec)
        return (replace(program, outputs=program.outputs[1:]) if spec == FULL else program), file

    monkeypatch.setattr(QuickCompilers, "_made", spoil)
    with Api(site.url, site.admin_token) as api:
        working = worker(site, api)
        working.run()
    found = program(site)
    assert found is not None
    assert (found.state, working.failed) == (ProgramState.FAILED, 3)
    assert "does not take it: the program's outputs lack" in str(found.reason)
    assert _others_are_ready(site)


def test_two_workers_share_what_is_wanted(site: Site) -> None:
    federation(site)
    until(lambda: state(site) is ProgramState.WANTED, 30)
    known = site.context.store.federations.get("digits")
    assert known is not None
    specs = specs_of((0.75, 0.5, 0.25), batch=7)
    site.context.programs.want(known, specs)
    with Api(site.url, site.admin_token) as api:
        workers = [Worker(api, "digits", QuickCompilers(n, 0.02), 2, 0.05, once=True, name=n) for n in ("one", "two")]
        threads = [threading.Thread(target=one.run) for one in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = site.context.store.programs.of("digits")
    assert {one.state for one in found} == {ProgramState.READY}
    assert {one.takes for one in found} == {1}
    assert sum(one.delivered for one in workers) == len(found)


def test_a_whole_ladder_is_compiled_without_being_wanted(site: Site) -> None:
    running(site.context)
    spec = specs_of((0.5,), batch=32, cuts=["9"])[0]
    with Api(site.url, site.admin_token) as api:
        working = worker(site, api)
        working.more = deque([Work(spec.key, spec, "a rung", None)])
        working.run()
    found = program(site, spec)
    assert found is not None
    assert found.state is ProgramState.READY


def test_the_whole_ladder_is_that_of_the_federation(site: Site) -> None:
    running(site.context, programs=ProgramSettings(widths=(1.0, 0.3)))
    with Api(site.url, site.admin_token) as api:
        wanted = _ladder(api, "digits", _bundle(api, "digits"))
    rungs = ladder(fractions=(1.0, 0.3))
    assert len(wanted) == len(rungs.widths) * (len(rungs.cuts) + 1)
    assert all(work.spec.widths in rungs.widths.values() for work in wanted)


def test_operators_see_programs_and_what_devices_run(
    site: Site, token_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    federation(site)
    until(lambda: state(site) is ProgramState.WANTED, 30)
    asked = ["--url", site.url, "--token-file", token_file]
    assert main(["fed", "programs", "digits", *asked]) == 0
    assert "wanted by 1 plan" in capsys.readouterr().out
    assert main(["fed", "devices", "digits", *asked]) == 0
    assert "left out: no program for its engine executorch 1.4.1 is compiled yet" in capsys.readouterr().out
    with Api(site.url, site.admin_token) as api:
        worker(site, api).run()
    until(lambda: bool(site.context.store.tasks.of("digits")), 30)
    assert main(["fed", "devices", "digits", *asked]) == 0
    assert "executorch 1.4.1, 1 all layers" in capsys.readouterr().out


def test_operators_see_that_a_program_ended_its_workers_and_let_it_be_tried_again(
    site: Site, token_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    known = running(site.context)
    site.context.programs.want(known, [FULL])
    for number in range(6):
        site.context.store.programs.take("digits", f"w{number}", now=100.0 * number, seconds=60)
    assert main(["fed", "programs", "digits", "--url", site.url, "--token-file", token_file]) == 0
    assert " failed: 5 workers ended while they compiled it" in capsys.readouterr().out
    with Api(site.url, site.admin_token) as api:
        api.post("/v1/federations/digits/programs/retry", {})
    assert state(site) is ProgramState.WANTED


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--jobs", "0"], "0 is not a number of jobs"),
        (["--poll", "0"], "0 is not a number of seconds"),
        (["--federation", "other"], "there is no federation 'other'"),
    ],
)
def test_wrong_use_is_explained(
    site: Site, token_file: str, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", site.url, "--token-file", token_file, *words]) == 1
    assert says in capsys.readouterr().err
