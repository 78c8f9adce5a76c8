"""The certificate that a coordinator makes: for this machine's names, renewed with the same key."""

import datetime
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509

from coordinator.http import own_certificate as module
from coordinator.http.own_certificate import own_certificate
from coordinator.http.public_address import PublicAddress, machine_names, public_url
from coordinator.http.server import _reachable
from coordinator.http.server_settings import ServerSettings
from coordinator.storage.tls_keys import locked_keys
from edgefl.errors import EdgeFLError
from edgefl.pins import PINS_FILE, certificates_in, pin_of_certificate

NAMES = ["coordinator.local", "10.0.0.5", "::1", "coordinator.local", "not a name", ""]
PIN = "sha256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"


def read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_a_certificate_is_for_the_names_of_the_machine_and_has_the_pinned_key(tmp_path: Path) -> None:
    made = own_certificate(tmp_path, NAMES)
    text = made.certificate.read_text()
    assert pin_of_certificate(certificates_in(text)[0]) == made.pins[0]
    names = read(made.certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["coordinator.local"]
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.5", "::1"]
    assert (tmp_path / "pins").read_text().split() == list(made.pins)
    assert {path.stat().st_mode & 0o777 for path in (made.certificate, made.private_key, tmp_path / "pins")} == {0o600}


def test_a_certificate_is_used_again_until_names_or_time_need_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = own_certificate(tmp_path, NAMES)
    serial = read(first.certificate).serial_number
    assert read(own_certificate(tmp_path, NAMES).certificate).serial_number == serial
    second = own_certificate(tmp_path, [*NAMES, "another.example"])
    assert second == first
    assert read(second.certificate).serial_number != serial
    monkeypatch.setattr(module, "_LIFE", datetime.timedelta(days=3000))  # so that less than half of it is left
    assert own_certificate(tmp_path, [*NAMES, "another.example"]) == first
    assert read(first.certificate).not_valid_after_utc.year > 2030


@pytest.mark.parametrize("content", [b"", b"rubbish"])
def test_a_damaged_certificate_is_made_again(tmp_path: Path, content: bytes) -> None:
    made = own_certificate(tmp_path, NAMES)
    made.certificate.write_bytes(content)
    assert own_certificate(tmp_path, NAMES).pins == made.pins
    assert pin_of_certificate(certificates_in(made.certificate.read_text())[0]) == made.pins[0]


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    made = own_certificate(tmp_path, NAMES)
    for path in (made.certificate, tmp_path / "pins"):
        path.unlink()
        path.symlink_to(tmp_path / "other")
    (tmp_path / "other").write_text("untouched")
    own_certificate(tmp_path, NAMES)
    assert (tmp_path / "other").read_text() == "untouched"
    assert not made.certificate.is_symlink()


def test_after_a_rotation_the_certificate_has_the_next_key(tmp_path: Path) -> None:
    first = own_certificate(tmp_path, NAMES)
    with locked_keys(tmp_path) as keys:
        keys.rotate()
    second = own_certificate(tmp_path, NAMES)
    assert second.pins[0] == first.pins[1]
    assert first.certificate.exists(), "a worker may be started with it until all are restarted"
    assert pin_of_certificate(certificates_in(second.certificate.read_text())[0]) == second.pins[0]


def test_names_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "pi")
    names = machine_names(["fl.example.org", "https://other.example:8443/fl"], "0.0.0.0")
    assert names[:4] == ["fl.example.org", "other.example", "pi", "pi.local"]
    assert {"localhost", "127.0.0.1", "::1"} <= set(names)
    assert "0.0.0.0" not in names
    assert machine_names([], "10.1.2.3")[0] == "10.1.2.3"
    assert "pi.local" not in machine_names([], "127.0.0.1")


def test_the_address_for_devices() -> None:
    assert public_url([], "10.1.2.3", 8443, tls=True) == "https://10.1.2.3:8443"
    assert public_url([], "127.0.0.1", 8000, tls=False) == "http://127.0.0.1:8000"
    assert public_url([], "fd00::5", 8443, tls=True) == "https://[fd00::5]:8443"
    assert public_url(["pi.local", "other"], "0.0.0.0", 8443, tls=True) == "https://pi.local:8443"
    assert public_url(["https://fl.example.org/"], "127.0.0.1", 8000, tls=False) == "https://fl.example.org"
    assert "0.0.0.0" not in public_url([], "0.0.0.0", 8443, tls=True)


def test_an_operators_address_is_for_devices_unless_it_is_on_this_machine() -> None:
    known = PublicAddress("https://10.0.0.5:8443", (PIN,))
    assert known.pairing(None, "digits", "https://pi.local:8443/").page_uri().startswith("https://pi.local:8443/join#")
    assert known.pairing(None, "digits", "https://127.0.0.1:8443").url == "https://10.0.0.5:8443"
    assert known.pairing(None, "digits").pins == (PIN,)
    assert known.pairing(None, "digits", "http://10.0.0.5:8000").pins == (), "without TLS there is nothing to pin"
    with pytest.raises(EdgeFLError):
        known.pairing(None, "digits", "https://a/%2e%2e")


@pytest.mark.parametrize("name", ["foo/bar", "-x", "pi.local:8443", "a b", "http://x/?q"])
def test_a_name_that_no_pairing_code_can_have_is_refused_before_anything_is_made(tmp_path: Path, name: str) -> None:
    with pytest.raises(EdgeFLError, match="is not the name or address of a machine"):
        ServerSettings(state=tmp_path, public_names=(name,))


def test_an_address_of_this_machine_that_no_pairing_code_can_have_needs_a_name() -> None:
    with pytest.raises(EdgeFLError, match="cannot be the address in pairing codes") as found:
        public_url((), "fe80::1%eth0", 8443, tls=True)
    assert "--public-name" in found.value.fix


def test_pins_of_the_certificate_that_will_follow_are_added_and_those_of_an_own_one_are_forgotten_with_it(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        own = _reachable(ServerSettings(state=tmp_path, tls=True, pins=(PIN,)), sock)
        assert own.pins == (*own_certificate(tmp_path, []).pins, PIN)
        assert (tmp_path / PINS_FILE).exists()
        other = _reachable(replace(own, pins=(PIN,)), sock)  # it has a certificate now, as one that is given
        assert other.pins == (PIN,)
        assert not (tmp_path / PINS_FILE).exists()
