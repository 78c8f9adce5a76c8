"""Documents that list something list all of it: routes, fields of telemetry, strategies, codecs, device classes."""

import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from coordinator.federations.telemetry_table import COLUMNS
from coordinator.http.app import make_app
from coordinator.rounds.context import Context
from coordinator.storage.open import open_blobs, open_store
from edgefl.simulation.known_classes import FLEETS, KNOWN_CLASSES
from edgefl.strategies import STRATEGIES, Strategy
from edgefl.values import Assignment, ClientPlan, Energy, Latency, Memory, Outcome, Reason, Thermal, Transfer
from tests.documents.commands import ROOT


def text_of(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def fields_of(cls: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(cls)]


def test_the_protocol_has_every_route(tmp_path: Path) -> None:
    with contextlib.closing(open_store(f"sqlite:///{tmp_path / 'coordinator.db'}")) as store:
        context = Context(store, open_blobs(str(tmp_path / "blobs")))
        document = json.loads(make_app(context).state.openapi_text)
    text = text_of("protocol.md")
    for path, operations in document["paths"].items():
        for method in operations:
            assert f"`{method.upper()} {path}" in text, f"{method.upper()} {path}"


def test_the_protocol_has_every_field_and_outcome() -> None:
    text = text_of("protocol.md")
    for name in [*fields_of(Assignment), *fields_of(ClientPlan), *Outcome, *Reason]:
        assert f"`{name}`" in text, name


@pytest.mark.parametrize("part", [Latency, Memory, Energy, Thermal, Transfer])
def test_telemetry_has_every_field(part: Any) -> None:
    text = text_of("telemetry.md")
    labels = {"source", "scope", "provenance", "sample_hertz"}  # explained once for all parts
    for name in set(fields_of(part)) - labels:
        assert f"`{name}`" in text, name


def test_telemetry_has_every_column() -> None:
    text = text_of("telemetry.md")
    for column in COLUMNS:
        assert f"`{column}`" in text, column


def test_strategies_are_all_listed() -> None:
    text = text_of("strategies.md")
    assert all(f"`{name}`" in text for name in STRATEGIES)


def test_the_seam_of_strategies_is_all_listed() -> None:
    text = text_of("own_strategy.md")
    methods = [name for name, value in vars(Strategy).items() if callable(value) and not name.startswith("_")]
    assert len(methods) == 7
    assert all(f"| `{name}` |" in text for name in methods)


def test_codecs_are_all_listed() -> None:
    text = text_of("wire.md")
    assert all(f'`["{form}"' in text for form in ("slice", "bitmap", "deltas", "bits", "counts"))
    both = text + text_of("rules.md") + text_of("profile.md")
    golden = [path for path in (ROOT / "tests" / "golden").iterdir() if path.suffix in (".json", ".safetensors")]
    assert [path.name for path in golden if f"`{path.name}`" not in both] == []


def test_device_classes_are_all_listed() -> None:
    text = text_of("simulation.md")
    assert all(f"`{name}`" in text for name in [*KNOWN_CLASSES, *FLEETS])
    for name, kind in KNOWN_CLASSES.items():
        speed = f"{kind.speed:g}"
        assert f"| `{name}` | {speed} | {kind.memory_bytes / 2**30:g} GiB |" in text
        assert f"{kind.idle_watts:g}, {kind.busy_watts:g} W" in text
