"""Pairing: everything that a device needs to join, as one URI for a QR code, a command line or a link.

    edgefl://join?url=https%3A%2F%2F10.0.0.5%3A8443&key=edgefl-key-...&federation=digits&pin=sha256:...&pin=sha256:...
    https://10.0.0.5:8443/join#key=edgefl-key-...&federation=digits&pin=sha256:...&pin=sha256:...

Both forms mean the same. The first opens a client that is installed; the second opens a page of the coordinator in any
browser, which does not send what is behind the `#`. docs/protocol.md has the format for other clients, and
tests/golden/pairing.json examples. What is read here may come from a poster on a wall, so whatever is not exactly a
pairing URI is refused.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes

from edgefl.coordinator_url import checked_url, trusting
from edgefl.errors import EdgeFLError
from edgefl.pins import check_pins

if TYPE_CHECKING:
    import ssl

__all__ = ["LONGEST_URI", "Pairing"]

LONGEST_URI = 2048
"""Characters. A QR code of this size can still be read; the usual URI has about 250."""

_APP = "edgefl://join?"
_PAGE = "/join"
_LONGEST_URL = 512
_MOST_FIELDS = 32
_SEGMENT = r"[A-Za-z0-9_~-][A-Za-z0-9._~-]*"
_URL = re.compile(
    r"https?://(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\])(?::[1-9][0-9]{0,4})?"
    rf"(?:/{_SEGMENT})*"
)
_KEY = re.compile(r"edgefl-key-[A-Za-z0-9_-]{1,128}")
_FEDERATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_FIELD = re.compile(r"([a-z][a-z0-9_]{0,31})=((?:[A-Za-z0-9._~:/!$'()*,;@?-]|%[0-9A-Fa-f]{2})+)")
"""Names in lower case; values in the characters that a URI allows here, apart from '&', '=' and '+'."""
_FIX = "Scan or copy the whole code again, or ask the operator for a new one."


@dataclass(frozen=True, slots=True)
class Pairing:
    """Where and how to join."""

    url: str
    """The coordinator's, without a slash at its end."""
    key: str | None = field(default=None, repr=False)
    """The join key; None if it is given by other means."""
    federation: str | None = None
    """The federation of the key, for people: the key alone decides."""
    pins: tuple[str, ...] = ()
    """The keys that the coordinator's certificate may have; none means the usual verification."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", self.url.rstrip("/"))
        if len(self.url) > _LONGEST_URL or _URL.fullmatch(self.url) is None:
            raise EdgeFLError(
                f"{self.url[:80]!r} is not a coordinator URL", fix="Write for example https://10.0.0.5:8443."
            )
        checked_url(self.url, insecure=True)  # its port, and an address of IPv6
        if self.key is not None and _KEY.fullmatch(self.key) is None:
            raise EdgeFLError("the key is not a join key", fix="A join key begins with edgefl-key-: copy it again.")
        if self.federation is not None and _FEDERATION.fullmatch(self.federation) is None:
            raise EdgeFLError(f"{self.federation[:80]!r} is not the name of a federation", fix=_FIX)
        object.__setattr__(self, "pins", check_pins(self.pins))
        if self.pins and not self.url.startswith("https:"):
            raise EdgeFLError(f"there are pins, but {self.url} is not encrypted", fix="Use an https:// URL.")

    @classmethod
    def parse(cls, text: str, *, insecure: bool = False) -> "Pairing":
        """Read a URI of either form. Plain HTTP to another machine is refused unless `insecure`."""
        if len(text) > LONGEST_URI:
            raise EdgeFLError(f"the pairing URI has more than {LONGEST_URI:,} characters", fix=_FIX)
        if not (text.isascii() and text.isprintable()) or " " in text:
            raise EdgeFLError("the pairing URI has spaces or other characters that no URI has", fix=_FIX)
        if text.startswith(_APP):
            fields = _fields(text.removeprefix(_APP))
            if "url" not in fields:
                raise EdgeFLError("the pairing URI does not name the coordinator's URL", fix=_FIX)
        else:
            before, hash_sign, behind = text.partition("#")
            if not (hash_sign and before.startswith(("https://", "http://")) and before.endswith(_PAGE)):
                raise EdgeFLError(
                    "this is not a pairing URI: it begins neither with edgefl://join? nor with https://.../join#",
                    fix=_FIX,
                )
            fields = _fields(behind)
            if "url" in fields:
                raise EdgeFLError("the pairing URI names two URLs", fix=_FIX)
            fields["url"] = [before.removesuffix(_PAGE)]
        url, key, federation = (_only(fields, name) for name in ("url", "key", "federation"))
        pairing = cls(url or "", key, federation, tuple(fields.get("pin", ())))
        checked_url(pairing.url, insecure=insecure)
        return pairing

    @classmethod
    def at(cls, text: str, *, insecure: bool = False) -> "Pairing":
        """Read a URI of either form, or a plain URL, which has neither key nor pins."""
        if text.lower().startswith("edgefl:") or "#" in text or text.endswith(_PAGE) or _KEY.search(text):
            return cls.parse(text, insecure=insecure)  # whose errors do not show the key
        return cls(checked_url(text, insecure=insecure))

    def tls(self, certificate: str | None = None) -> "ssl.SSLContext | None":
        """Return the settings of TLS that trust the pins, or else a certificate; None for those of the system."""
        if self.pins:
            from edgefl.pinned_tls import PinnedContext

            return PinnedContext(self.pins)
        return None if certificate is None else trusting(certificate)

    def app_uri(self) -> str:
        """Return the form that opens an installed client."""
        return _APP + _written([("url", self.url), *self._fields()])

    def page_uri(self) -> str:
        """Return the form that any browser opens."""
        return f"{self.url}{_PAGE}#{_written(self._fields())}"

    def _fields(self) -> list[tuple[str, str]]:
        named = [(name, value) for name, value in (("key", self.key), ("federation", self.federation)) if value]
        return named + [("pin", pin) for pin in self.pins]


def _fields(text: str) -> dict[str, list[str]]:
    """Return the values of every field by name. Unknown names are kept: a later version may add some."""
    fields: dict[str, list[str]] = {}
    parts = text.split("&") if text else []
    if len(parts) > _MOST_FIELDS:
        raise EdgeFLError(f"the pairing URI has more than {_MOST_FIELDS} fields", fix=_FIX)
    for part in parts:
        found = _FIELD.fullmatch(part)
        if found is None:
            raise EdgeFLError("the pairing URI has a part that is not a field: name=value", fix=_FIX)
        fields.setdefault(found[1], []).append(_decoded(found[2]))
    return fields


def _decoded(value: str) -> str:
    try:
        text = unquote_to_bytes(value).decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if not text.isprintable():
        raise EdgeFLError("the pairing URI has a field with characters that cannot be shown", fix=_FIX)
    return text


def _only(fields: dict[str, list[str]], name: str) -> str | None:
    values = fields.get(name, [])
    if len(values) > 1:
        raise EdgeFLError(f"the pairing URI has the field {name!r} twice", fix=_FIX)
    return values[0] if values else None


def _written(fields: Iterable[tuple[str, str]]) -> str:
    """Return fields with everything escaped but letters, digits and - . _ ~; and the colon, except in a URL."""
    return "&".join(f"{name}={quote(value, safe='' if name == 'url' else ':')}" for name, value in fields)
