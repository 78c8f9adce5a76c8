"""plotly.js, which comes with plotly's Python package, and our own static files; pages embed both."""

import re
from importlib.resources import files

from edgefl.errors import MissingDependencyError

__all__ = ["OWN_FILES", "own_file", "plotly_js", "style_ids"]

OWN_FILES = ("style.css", "charts.js", "tables.js")


def plotly_js() -> str:
    """Return plotly.js."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise MissingDependencyError("plotly", action="Drawing a report", extra="report") from None
    # Browsers normalise line ends, and the policy has the digest of the normalised text.
    return str(get_plotlyjs()).replace("\r\n", "\n").replace("\r", "\n")


def style_ids(script: str) -> tuple[str, ...]:
    """Return the ids of the style elements that plotly.js adds to a page unless elements with these ids exist.

    A strict policy forbids such elements. `style.css` has the rules that matter; the others are for maps.
    """
    found = re.findall(r'getElementById\("([0-9a-f]{64})"\)', script)
    return ("plotly.js-style-global", *dict.fromkeys(found))


def own_file(name: str) -> str:
    """Return a file of `static/`."""
    return (files("edgefl.charts") / "static" / name).read_text(encoding="utf-8")
