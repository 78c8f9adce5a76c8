"""docs/rules.md has every setting of every local rule, with its type and default."""

import re
from pathlib import Path

import pytest

from edgefl.local_rules import RULES, Descent
from edgefl.local_rules.feature_sums import ForwardRule
from edgefl.values.settings import added_settings, settings_from, settings_of

PAGE = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| (?:`([^`]+)`|none) \|", re.MULTILINE)


def section(heading: str) -> str:
    """Return a section of the page, up to the next heading of any level."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/rules.md has no section {heading}"
    return found[1]


def table(heading: str) -> dict[str, tuple[str, str | None]]:
    """Return the type and default of every setting in a section's table."""
    return {name: (kind, default or None) for name, kind, default in ROW.findall(section(heading))}


def settings(cls: type) -> dict[str, tuple[str, str | None]]:
    """Return the type and default of every setting of a class."""
    written: dict[str, object] = {**settings_from(cls())}
    written |= {name: getattr(cls(), name) for name in added_settings(cls)}  # not written while they have their default
    defaults = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in written.items()}
    return {name: (getattr(kind, "words", ""), defaults.get(name)) for name, kind in settings_of(cls).items()}


def test_the_settings_of_gradient_descent_are_listed() -> None:
    assert table("Gradient descent") == settings(Descent)


@pytest.mark.parametrize("name", RULES)
def test_the_settings_of_a_rule_are_listed(name: str) -> None:
    descends = name != "probabilistic_masks" and not issubclass(RULES[name], ForwardRule)
    shared = table("Gradient descent") if descends else {}
    assert shared | table(f"`{name}`") == settings(RULES[name])
