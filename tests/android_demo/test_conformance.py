"""The conformance suite with the Java client: what docs/conformance.md asks of every client."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.android_demo.coordinator import PROFILE
from tests.android_demo.java_client import JVM


def rows(jar: Path, folder: Path, *options: str) -> dict[str, str]:
    """Run the suite with the jar as its client, and return the verdict of every row."""
    profile, out = folder / "profile.json", folder / "report.json"
    profile.write_text(json.dumps(PROFILE), encoding="utf-8")
    client = f"{' '.join(JVM)} -jar {jar} join {{uri}} --data {{data}} --home {{home}} --profile {profile} --threads 1"
    command = [
        sys.executable,
        "-m",
        "edgefl",
        "conformance",
        "serve",
        "--tls",
        "--client",
        client,
        "--out",
        str(out),
        *options,
    ]
    subprocess.run(command, capture_output=True, text=True)
    report: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return {row["row"]: row["verdict"] for row in report["rows"]}


def test_it_trains_and_refuses_as_it_must(client_jar: Path, tmp_path: Path) -> None:
    found = rows(client_jar, tmp_path, "--only", "pairing,training,refusals,hostile/wrong-types,ending")
    assert len(found) > 20
    assert {row: verdict for row, verdict in found.items() if verdict != "right"} == {}


@pytest.mark.thorough
def test_every_row_is_right(client_jar: Path, tmp_path: Path) -> None:
    """It never sends If-None-Match, which is optional; all other rows are asked."""
    found = rows(client_jar, tmp_path)
    assert len(found) > 90
    others = {row: verdict for row, verdict in found.items() if verdict != "right"}
    assert others == {"downloads/not-modified": "not asked"}
