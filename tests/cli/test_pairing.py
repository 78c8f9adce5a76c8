"""Pairing on the command line: join with a code, restart, rotate the key, and find out when somebody else answers."""

import io
import json
import socket
import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from device_runtime.agent.agent_home import AgentHome, Identity
from device_runtime.agent.client import CoordinatorClient
from device_runtime.agent.pin_refresh import PinRefresh
from device_runtime.agent.transport import HttpTransport, WrongServerError
from edgefl.cli.main import main
from edgefl.pairing import Pairing
from edgefl.pinned_tls import PinnedContext
from edgefl.pins import pin_of_certificate, pin_of_key
from edgefl.values import Enrolment, dumps
from tests.cli.running_coordinator import coordinator, write_federation
from tests.device_runtime import coordinator as device_tests
from tests.device_runtime.http_coordinator import serving
from tests.tls_certificates import new_key, pin_of, write_certificate
from tests.values.samples import PROFILE

KEY = "edgefl-key-for-tests"
MINE, OTHER = new_key(), new_key()


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> device_tests.Coordinator:
    """A coordinator whose federation is over: who joins is done at once."""
    monkeypatch.setattr(device_tests, "KEY", KEY)
    monkeypatch.setattr(AgentHome, "lock", lambda self: None)  # it is held until the process ends
    monkeypatch.delenv("EDGEFL_JOIN_KEY", raising=False)
    monkeypatch.delenv("EDGEFL_JOIN_URI", raising=False)
    return device_tests.Coordinator()


def join(folder: Path, *words: str) -> int:
    (folder / "profile.json").write_text(dumps(PROFILE), encoding="utf-8")
    home = ["--home", str(folder / "home"), "--profile", str(folder / "profile.json")]
    return main(["join", *words, "--data", "digits", "--client", "2/5", "--threads", "1", *home])


def identity(folder: Path) -> Identity:
    found = AgentHome(folder / "home").identity()
    assert found is not None
    return found


def test_a_device_joins_with_a_code_and_keeps_all_of_it_but_the_key(
    tmp_path: Path, there: device_tests.Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(there, write_certificate(tmp_path, MINE, name="elsewhere.example", days=(-9, -8))) as url:
        pairing = Pairing(url, KEY, "digits", (pin_of(MINE), pin_of(OTHER)))
        monkeypatch.setenv("EDGEFL_JOIN_URI", pairing.page_uri())
        assert join(tmp_path) == 0
        monkeypatch.delenv("EDGEFL_JOIN_URI")
        known = identity(tmp_path)
        assert (known.coordinator, known.federation, known.pins) == (url, "digits", pairing.pins)
        assert known.token == device_tests.TOKEN
        assert not any(KEY in path.read_text("latin-1") for path in (tmp_path / "home").rglob("*") if path.is_file())
        assert join(tmp_path, url) == 0, "the URL alone, with the pins that it has"
        assert join(tmp_path) == 0, "nothing at all"
    assert identity(tmp_path) == known
    assert len(there.enrolments) == 1


@pytest.mark.parametrize("way", ["argument", "standard input", "pin"])
def test_a_code_comes_in_other_ways_too(
    tmp_path: Path, there: device_tests.Coordinator, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    with serving(there, write_certificate(tmp_path, MINE)) as url:
        pairing = Pairing(url, KEY, pins=(pin_of(MINE),))
        words = {"argument": [pairing.app_uri()], "standard input": ["-"], "pin": [url, "--pin", pin_of(MINE)]}[way]
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{pairing.page_uri()}\n"))
        monkeypatch.setenv("EDGEFL_JOIN_KEY", KEY if way == "pin" else "")
        assert join(tmp_path, *words) == 0
    assert identity(tmp_path).pins == (pin_of(MINE),)


def test_somebody_else_gets_nothing_and_the_owner_is_told(
    tmp_path: Path, there: device_tests.Coordinator, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(there, write_certificate(tmp_path, OTHER)) as url:
        assert join(tmp_path, Pairing(url, KEY, pins=(pin_of(MINE),)).page_uri()) == 1
        said = capsys.readouterr().err
        assert "not the coordinator that was paired" in said
        assert "Nothing was sent" in said
        assert KEY not in said
        assert there.requests == []
        assert join(tmp_path, url) == 1, "the pins are known now, though it has not joined"
        assert there.requests == []
        assert join(tmp_path, Pairing(url, KEY, pins=(pin_of(OTHER),)).page_uri()) == 0, "a new code replaces them"


def test_the_code_of_a_service_does_not_bring_back_the_pins_of_keys_that_are_gone(
    tmp_path: Path, there: device_tests.Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = write_certificate(tmp_path, MINE)
    with serving(there, certificate) as url:
        code = Pairing(url, KEY, pins=(pin_of(MINE),))
        monkeypatch.setenv("EDGEFL_JOIN_URI", code.page_uri())
        assert join(tmp_path) == 0
        told = (pin_of(MINE), pin_of(OTHER))
        AgentHome(tmp_path / "home").save_identity(replace(identity(tmp_path), pins=told))
        assert join(tmp_path) == 0, "the same code at every start"
        assert identity(tmp_path).pins == told
        monkeypatch.setenv("EDGEFL_JOIN_URI", replace(code, key=f"{KEY}-2").page_uri())
        assert join(tmp_path) == 0, "a new code"
        assert identity(tmp_path).pins == code.pins


def test_pins_and_a_certificate_exclude_each_other_and_pins_can_be_forgotten(
    tmp_path: Path, there: device_tests.Coordinator, capsys: pytest.CaptureFixture[str]
) -> None:
    certificate = write_certificate(tmp_path, MINE)
    with serving(there, certificate) as url:
        uri = Pairing(url, KEY, pins=(pin_of(OTHER),)).page_uri()
        assert join(tmp_path, uri, "--certificate", str(certificate)) == 1
        assert "--pin none" in capsys.readouterr().err
        assert join(tmp_path, url, "--pin", "none", "--key", KEY, "--certificate", str(certificate)) == 0
    assert identity(tmp_path).pins == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["https://10.0.0.5/join"], "https://.../join#"),
        (["https://10.0.0.5/join#key=edgefl-key-x&key=edgefl-key-y"], "twice"),
        (["http://10.0.0.5/join#key=edgefl-key-x"], "--insecure"),
        (["https://10.0.0.5", "--pin", "sha256:x"], "is not a pin"),
        (["http://127.0.0.1:9", "--pin", pin_of_key(b"")], "not encrypted"),
        ([], "there is no coordinator to join"),
    ],
)
def test_what_is_not_a_code_is_refused(
    tmp_path: Path,
    there: device_tests.Coordinator,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    said: str,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert join(tmp_path, *words) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "home" / "identity.json").exists()


def key_in_use(url: str) -> str:
    """Return the pin of the certificate that a server shows."""
    host, _, port = url.removeprefix("https://").partition(":")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = socket.create_connection((host, int(port)), timeout=20)
    with connection, context.wrap_socket(connection) as encrypted:
        return pin_of_certificate(encrypted.getpeercert(binary_form=True) or b"")


def test_a_device_goes_on_when_the_key_is_rotated_and_one_that_was_away_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, file = tmp_path / "state", write_federation(tmp_path)

    def rotate(*words: str) -> int:
        return main(["certificate", "--rotate", "--json", "--state", str(state), *words])

    with coordinator(state, "--tls", str(file)) as running:
        port = running.url.rpartition(":")[2]
        pairing = Pairing.parse(running.said["federations"][0]["pairing_uri"])
        assert pairing.url == running.url
        assert pairing.pins[0] == key_in_use(running.url)
        assert Pairing.parse(running.said["pairing_uri"]) == replace(pairing, key=None, federation=None)
        here, away = (_Device(tmp_path / name, pairing) for name in ("here", "away"))
        fed = ["fed", "list", "--json", "--token-file", str(state / "admin-token")]
        assert main([*fed, "--url", running.url]) == 0, "the operator's client on this machine finds the pins"
        assert main([*fed, "--url", running.said["pairing_uri"]]) == 0
        assert rotate() == 0
        assert key_in_use(running.url) == pairing.pins[0], "it takes effect at the restart"
        assert rotate() == 1
        assert "has not been used yet" in capsys.readouterr().err
    with coordinator(state, "--tls", "--port", port) as running:
        assert running.url == pairing.url
        assert key_in_use(running.url) == pairing.pins[1]
        here.work()
        assert here.pins == Pairing.parse(running.said["pairing_uri"]).pins
        assert here.pins[0] == pairing.pins[1]
        assert away.pins == pairing.pins
        assert rotate() == 0
    with coordinator(state, "--tls", "--port", port):
        here.work()
        with pytest.raises(WrongServerError, match="not the coordinator that was paired"):
            away.work()


class _Device:
    """The parts of a device that talk to its coordinator."""

    def __init__(self, folder: Path, pairing: Pairing) -> None:
        assert pairing.key is not None
        self._home, self._context = AgentHome(folder), PinnedContext(pairing.pins)
        self._transport = HttpTransport(pairing.url, tls=self._context)
        self._client = CoordinatorClient(self._transport)
        answer = self._client.enrol(Enrolment(enrolment_id=folder.name, profile=PROFILE, software="x"), pairing.key)
        self._client.token = answer.token
        self._home.save_identity(Identity(pairing.url, folder.name, answer.device_id, answer.token, pins=pairing.pins))
        self._refresh = PinRefresh(self._home, self._client, self._context)
        self.close()

    def work(self) -> None:
        """Do what an agent does in each turn."""
        try:
            self._client.poll(0)
            self._refresh.refresh_if_due()
        finally:
            self.close()  # so that the coordinator stops at once

    @property
    def pins(self) -> tuple[str, ...]:
        """What it has stored."""
        known = self._home.identity()
        assert known is not None
        return known.pins

    def close(self) -> None:
        """Close its connections."""
        self._transport.close()


def test_the_command_prints_the_pins_of_a_state_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certificate", "--state", str(tmp_path)]) == 1
    assert "there is no certificate" in capsys.readouterr().err
    (tmp_path / "tls").mkdir(mode=0o700)
    assert main(["certificate", "--state", str(tmp_path), "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main(["certificate", "--state", str(tmp_path), "--rotate", "--again", "--json"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert second["pin"] == first["next_pin"]
    assert not second["in_use"]
    assert main(["certificate", "--state", str(tmp_path)]) == 0
    assert "from the next start" in capsys.readouterr().out
