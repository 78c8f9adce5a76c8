"""The process: what it refuses to start with, its admin token, TLS, and that it stops."""

import os
import shutil
import signal
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from coordinator.federations.tokens import OperatorRole, hash_of
from coordinator.http.operator_tokens import operator_tokens
from coordinator.http.server import listen, serve
from coordinator.http.server_settings import ServerSettings
from coordinator.storage.open import open_store
from edgefl.coordinator_url import is_loopback
from edgefl.errors import EdgeFLError


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"host": "0.0.0.0", "insecure_public": True, "tls": True}, "without TLS"),
        ({"insecure_public": True, "certificate": Path("certificate.pem")}, "without TLS"),
        ({"public_names": ("a b",)}, "not the name or address"),
        ({"public_names": ("https://user@host",)}, "not the name or address"),
        ({"pins": ("sha256:short",)}, "not a pin"),
        ({"private_key": Path("key.pem")}, "but no certificate"),
        ({"port": 70000}, "not a valid port"),
        ({"admin_token": "short"}, "too short"),
        ({"viewer_token": "short"}, "viewer token is too short"),
        ({"admin_token": "has a blank in it, which no header likes"}, "a header cannot carry"),
        ({"log_level": "loud"}, "not a log level"),
        ({"log_format": "xml"}, "not a log format"),
    ],
)
def test_settings_that_are_unsafe_or_wrong_are_refused_with_a_fix(
    folder: Path, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(EdgeFLError, match=says) as caught:
        ServerSettings(state=folder, **changes)
    assert caught.value.fix


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "coordinator.example"])
def test_other_machines_come_in_with_tls_unless_it_is_said_aloud(folder: Path, host: str) -> None:
    assert ServerSettings(state=folder, host=host).makes_certificate
    assert not ServerSettings(state=folder, host=host, certificate=Path("certificate.pem")).makes_certificate
    assert not ServerSettings(state=folder, host=host, insecure_public=True).makes_certificate


def test_on_this_machine_tls_is_a_choice(folder: Path) -> None:
    assert not ServerSettings(state=folder).makes_certificate
    assert ServerSettings(state=folder, tls=True).makes_certificate
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"))


def test_settings_do_not_show_the_admin_token(folder: Path) -> None:
    token = "a" * 40
    assert token not in repr(ServerSettings(state=folder, admin_token=token))


@pytest.mark.parametrize("role", list(OperatorRole))
def test_a_token_is_made_once_in_a_file_that_only_its_owner_reads(folder: Path, role: OperatorRole) -> None:
    store = open_store(f"sqlite:///{folder / 'db'}")
    settings = ServerSettings(state=folder / "state")
    made = operator_tokens(settings, store)[role]
    assert made.path == folder / "state" / f"{role}-token"
    assert made.path.stat().st_mode & 0o777 == 0o600
    assert made.path.read_text().strip() == made.text
    assert made.text is not None
    assert hash_of(made.text) == made.hash
    assert made.text not in repr(made)
    assert operator_tokens(settings, store)[role] == made
    store.close()


def test_a_second_worker_on_one_database_accepts_the_first_ones_token(folder: Path) -> None:
    store = open_store(f"sqlite:///{folder / 'db'}")
    first = operator_tokens(ServerSettings(state=folder / "one"), store)[OperatorRole.ADMIN]
    second = operator_tokens(ServerSettings(state=folder / "two"), store)[OperatorRole.ADMIN]
    assert second.hash == first.hash
    assert (second.text, second.path) == (None, None)
    told = operator_tokens(ServerSettings(state=folder / "three", admin_token="b" * 40), store)[OperatorRole.ADMIN]
    assert told.hash == hash_of("b" * 40)
    store.close()


def test_a_viewer_with_the_admins_token_would_be_an_admin_and_is_refused(folder: Path) -> None:
    store = open_store(f"sqlite:///{folder / 'db'}")
    admin = operator_tokens(ServerSettings(state=folder / "state"), store)[OperatorRole.ADMIN].text
    with pytest.raises(EdgeFLError, match="the same token"):
        operator_tokens(ServerSettings(state=folder / "state", viewer_token=admin), store)
    store.close()


def test_a_port_that_is_taken_is_an_error_with_advice() -> None:
    with listen("127.0.0.1", 0) as taken:
        taken.listen()
        with pytest.raises(EdgeFLError, match="cannot listen") as caught:
            listen("127.0.0.1", taken.getsockname()[1])
    assert "--port" in caught.value.fix


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key, made by openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: apt install openssl")
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=coordinator "
        f"-addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {certificate}"
    )
    subprocess.run(command.split(), check=True, capture_output=True)
    return certificate, key


def test_it_speaks_tls_to_clients_that_verify_and_creates_what_it_was_given(
    folder: Path, certificate: tuple[Path, Path]
) -> None:
    script = (
        "import sys, pathlib, coordinator.http.server as s, coordinator.http.server_settings as t\n"
        "from tests.coordinator.fleet import settings_of\n"
        "from tests.device_runtime.federation import bundle\n"
        "from edgefl.artifacts.bundle import pack_bundle\n"
        "p = [pathlib.Path(a) for a in sys.argv[1:]]\n"
        "settings = t.ServerSettings(state=p[0], port=0, certificate=p[1], private_key=p[2])\n"
        "say = lambda at: print(at.url, at.created, flush=True)\n"
        "s.serve(settings, federations=[(settings_of(), pack_bundle(bundle()))], ready=say)\n"
        "print('stopped', flush=True)\n"
    )
    command = [sys.executable, "-c", script, str(folder), *map(str, certificate)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url, _, created = process.stdout.readline().strip().partition(" ")
        assert created == "(('digits', True),)"
        assert url.startswith("https://127.0.0.1:")
        token = (folder / "admin-token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(verify=ssl.create_default_context(cafile=str(certificate[0]))) as client:
            known = client.get(f"{url}/v1/federations", headers=headers).json()["federations"]
            assert [one["name"] for one in known] == ["digits"]
            key = client.post(f"{url}/v1/federations/digits/keys", headers=headers, json={}).json()["key"]
            sent = client.post(f"{url}/v1/speed", content=bytes(300_000), headers={"Authorization": f"Bearer {key}"})
            assert sent.status_code == 204
        with pytest.raises(httpx.ConnectError):
            httpx.get(url, verify=ssl.create_default_context())
        os.kill(process.pid, signal.SIGTERM)
        out, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert out == "stopped\n"
    assert token not in errors


@pytest.mark.parametrize("content", [b"", b"no certificate"])
def test_a_certificate_that_cannot_be_used_is_an_error_with_advice(folder: Path, content: bytes) -> None:
    path = folder / "certificate.pem"
    path.write_bytes(content)
    settings = ServerSettings(state=folder / "state", port=0, certificate=path)
    with pytest.raises(EdgeFLError, match="certificate") as caught:
        serve(settings)
    assert "PEM" in caught.value.fix
