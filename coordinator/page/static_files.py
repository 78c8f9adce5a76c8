"""The files of the page, and the content security policy under which a browser runs them.

There is no build step: a browser gets the files in `static/`, the style and chart scripts that reports use too, and the
installed charting library. A file is read and compressed on the first request. Its tag is its digest: a browser keeps
it and asks whether it has changed, so an upgraded coordinator shows its new page at once.
"""

import gzip
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.util import find_spec

from edgefl.charts.page_assets import own_file, plotly_js, style_ids
from edgefl.values import digest_of

__all__ = ["POLICY", "POLICY_WITHOUT_REQUESTS", "PageFile", "has_charts", "page_file", "template_ids"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing from other hosts, nothing inline, no framing."""
POLICY_WITHOUT_REQUESTS = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Of a page whose address holds a secret: its scripts cannot send anything."""

_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_SHARED = frozenset({"style.css", "charts.js"})
_LIBRARY = "plotly.js"


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file as it is sent."""

    kind: str
    body: bytes
    packed: bytes
    """Compressed with gzip: the charting library has 5 MB, compressed 1.5 MB."""
    digest: str


_known: dict[str, PageFile] = {}


def page_file(name: str) -> PageFile | None:
    """Return a file of the page, or None if it does not exist. Anybody may ask for any name, so only existing files are
    cached."""
    if name not in _known and (found := _read(name)) is not None:
        _known[name] = found
    return _known.get(name)


def _read(name: str) -> PageFile | None:
    ending = name.rpartition(".")[2]
    if name == _LIBRARY:
        text = plotly_js() if has_charts() else None
    elif name in _SHARED:
        text = own_file(name)
    else:
        text = _own(name) if ending in _KINDS else None
    if text is None:
        return None
    body = text.encode()
    packed = gzip.compress(body, 6, mtime=0)
    return PageFile(_KINDS[ending], body, packed, digest_of(body).removeprefix("sha256:")[:32])


def has_charts() -> bool:
    """Whether the charting library is installed."""
    return find_spec("plotly") is not None


@lru_cache
def template_ids() -> tuple[str, ...]:
    """Return the ids of elements that keep the charting library from adding styles, which the policy forbids."""
    return style_ids(plotly_js()) if has_charts() else ()


def _own(name: str) -> str | None:
    """Return a file of `static/`. Names come from URLs, so only listed files are found."""
    for file in (files("coordinator.page") / "static").iterdir():
        if file.name == name and file.is_file():
            return file.read_text(encoding="utf-8")
    return None
