"""The frame of a page: one self-contained file with a Content-Security-Policy that blocks all requests.

The policy lists the digest of every embedded script and stylesheet, so nothing else runs: the data of a run is shown,
but cannot do anything.
"""

import base64
import hashlib

from edgefl import __version__
from edgefl.charts.figure import Figure
from edgefl.charts.page_assets import own_file, plotly_js, style_ids
from edgefl.report.html_elements import Markup, data_block, element, joined

__all__ = ["chart", "charts", "page", "section"]

_NO_SCRIPT = "The charts need JavaScript. Their content is also described beside each of them and in the tables."


def page(*, title: str, subtitle: str, notices: tuple[str, ...], sections: tuple[tuple[str, str, Markup], ...]) -> str:
    """Return a whole page; a section is an id, a heading and its content."""
    style, library = own_file("style.css"), plotly_js()
    scripts = [library, own_file("charts.js"), own_file("tables.js")]
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_digest, map(_script_text, scripts)))}; "
        f"style-src {_digest(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = joined(
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        Markup('<meta name="referrer" content="no-referrer">'),
        element("title", f"{title} · EdgeFL"),
        Markup(f"<style>{style}</style>"),
        *(element("template", id=name, class_="no-inline-styles") for name in style_ids(library)),
    )
    body = joined(
        element("a", "Skip to content", class_="skip", href="#content"),
        element(
            "header",
            element("p", "EdgeFL", class_="brand"),
            element("h1", title),
            element("p", subtitle, class_="subtitle"),
            *(element("p", notice, class_="notice", role="status") for notice in notices),
            element("nav", element("ul", *(_jump(name, heading) for name, heading, _ in sections)), aria_label="Page"),
        ),
        element("noscript", element("p", _NO_SCRIPT, class_="notice")),
        element("main", *(section(*one) for one in sections), id="content"),
        element("footer", element("p", f"Made by edgefl {__version__}. This page loads nothing from other hosts.")),
        *(Markup(f"<script>{_script_text(script)}</script>") for script in scripts),
    )
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>{body}</body>\n</html>\n'


def section(name: str, heading: str, content: Markup) -> Markup:
    """Return a section with a heading."""
    return element(
        "section", element("h2", heading, id=f"{name}-heading"), content, id=name, aria_labelledby=f"{name}-heading"
    )


def charts(figures: tuple[Figure, ...], *, columns: str = "two") -> Markup:
    """Return charts in as many columns as fit the screen."""
    return element("div", *map(chart, figures), class_=f"charts {columns}")


def chart(figure: Figure) -> Markup:
    """Return a chart: its heading, its summary, and the element that `charts.js` draws it in."""
    key = [element("li", element("span", class_=f"swatch {name}"), words) for name, words in figure.key]
    return element(
        "figure",
        element("h3", figure.title),
        element(
            "div",
            class_=f"chart tall-{_height_class(figure)}",
            data_chart=f"{figure.name}-spec",
            role="img",
            aria_label=f"{figure.title}. {figure.summary}",
        ),
        element("ul", *key, class_="key") if key else Markup(),
        element("figcaption", figure.summary),
        data_block(f"{figure.name}-spec", figure.spec()),
    )


def _height_class(figure: Figure) -> int:
    """Return the height class of a chart, which reserves its space before it is drawn."""
    return min(9, round(int(figure.layout["height"]) / 100))


def _jump(name: str, heading: str) -> Markup:
    return element("li", element("a", heading, href=f"#{name}"))


def _script_text(script: str) -> str:
    """Escape a script so that it cannot close its element."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
