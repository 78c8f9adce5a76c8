"""HTML from values, and the one place that escapes: whatever comes from a run is text, never markup.

A `Markup` is HTML that was made here; any other text is escaped when it is put into an element. The pages carry a
policy that forbids inline handlers and styles, so attributes are names and values alone.
"""

import html
import json

from edgefl.values import printable

__all__ = ["Markup", "data_block", "element", "joined"]


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str | bool | None) -> Markup:
    """Return an element; `class_` is class, an underscore in a name a dash, True an attribute without a value."""
    words = [tag]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        named = name.rstrip("_").replace("_", "-")
        words.append(named if value is True else f'{named}="{html.escape(printable(str(value)))}"')
    return Markup(f"<{' '.join(words)}>{joined(*children)}</{tag}>")


def joined(*children: str) -> Markup:
    """Return children one after the other, escaped where they are not markup."""
    return Markup("".join(child if isinstance(child, Markup) else html.escape(printable(child)) for child in children))


def data_block(name: str, value: object) -> Markup:
    """Return JSON in a script element that nobody runs, and which nothing in it can close."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(f'<script type="application/json" id="{html.escape(name)}">{text}</script>')
