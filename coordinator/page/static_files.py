"""The files of the page, and the policy under which a browser may run them.

Nothing is built: what is in `static/` is what a browser gets, beside the looks and charts that reports have too, and
the charting library as it was installed. A file is read and packed when it is first asked for. Its tag is its digest:
a browser keeps it and asks whether it is still the same, so a coordinator that was upgraded shows its new page at once.
"""

import gzip
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.util import find_spec

from edgefl.charts.page_assets import own_file, plotly_js, style_ids
from edgefl.values import digest_of

__all__ = ["POLICY", "PageFile", "has_charts", "page_file", "template_ids"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing from elsewhere, nothing inline, in nobody's frame."""

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
    """A file as it goes out."""

    kind: str
    body: bytes
    packed: bytes
    """With gzip: the charting library is 5 MB, and 1.5 MB packed."""
    digest: str


_known: dict[str, PageFile] = {}


def page_file(name: str) -> PageFile | None:
    """Return a file of the page, or None if there is none of this name; anybody may ask for any, so only what there is
    is kept."""
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
    """Return the ids of elements that keep the charting library from adding styles of its own, which are forbidden."""
    return style_ids(plotly_js()) if has_charts() else ()


def _own(name: str) -> str | None:
    """Return a file of `static/`; names come from addresses, so only what is listed there is found."""
    for file in (files("coordinator.page") / "static").iterdir():
        if file.name == name and file.is_file():
            return file.read_text(encoding="utf-8")
    return None
