"""docs/messages.md has every message and every field of it, as the classes have them."""

import dataclasses
import re

import pytest

from edgefl.values import Outcome, Reason, kinds
from tests.documents.commands import ROOT
from tests.documents.messages import MESSAGES, PAGE, messages_page, parts_of

NOT_SENT = {"budget", "device_profiles"}
"""Documents of `edgefl.values` that stay on one machine."""
CLASSES = {
    name: cls
    for kind in MESSAGES
    for name, cls in [(kind, kinds()[kind].cls), *((part.__name__, part) for part in parts_of(kinds()[kind].cls))]
}


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == messages_page(), "run: python -m tests.test_documents"


def test_every_document_of_the_protocol_is_on_the_page() -> None:
    values = {name for name, kind in kinds().items() if kind.cls.__module__.startswith("edgefl.values.")}
    assert values - NOT_SENT == set(MESSAGES)


@pytest.mark.parametrize("name", CLASSES)
def test_a_table_has_the_fields_of_its_class(name: str) -> None:
    """Read from the page by itself, whatever the generator does."""
    text = PAGE.read_text(encoding="utf-8")
    section = re.split(r"^##", text.partition(f"# {name}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| .*? \| (required|`.*?`) \| ", section, re.MULTILINE))
    fields = dataclasses.fields(CLASSES[name])
    assert list(rows) == [field.name for field in fields]
    for field in fields:
        missing = dataclasses.MISSING
        assert (rows[field.name] == "required") == (field.default is missing and field.default_factory is missing)


def test_every_reason_says_what_it_does_to_the_next_plan() -> None:
    text = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    rows = "".join(re.findall(r"^\| (`[^|]*)\|[^|]*\|[^|]*\|$", text, re.MULTILINE))
    assert all(f"`{word}`" in rows for word in [*Reason, *Outcome])
