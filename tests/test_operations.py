"""What operators are given: alerts and a dashboard made of metrics that exist, and a unit that confines the service."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from prometheus_client.parser import text_string_to_metric_families

from tests.coordinator.http.site import Site, serving

EXAMPLES = Path(__file__).parents[1] / "examples" / "coordinator"
SERVICE = EXAMPLES / "edgefl-coordinator.service"
REQUIRED = {
    "NoNewPrivileges": "true",
    "CapabilityBoundingSet": "",
    "AmbientCapabilities": "",
    "DynamicUser": "true",
    "StateDirectoryMode": "0700",
    "WorkingDirectory": "%S/edgefl-coordinator",
    "UMask": "0077",
    "ProtectSystem": "strict",
    "ProtectHome": "true",
    "PrivateTmp": "true",
    "PrivateDevices": "true",
    "PrivateIPC": "true",
    "PrivateMounts": "true",
    "PrivateUsers": "true",
    "ProtectClock": "true",
    "ProtectControlGroups": "true",
    "ProtectHostname": "true",
    "ProtectKernelLogs": "true",
    "ProtectKernelModules": "true",
    "ProtectKernelTunables": "true",
    "ProtectProc": "invisible",
    "RestrictNamespaces": "true",
    "RestrictRealtime": "true",
    "RestrictSUIDSGID": "true",
    "LockPersonality": "true",
    "MemoryDenyWriteExecute": "true",
    "RemoveIPC": "true",
    "SystemCallArchitectures": "native",
    "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX",
}


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load((EXAMPLES / "prometheus-rules.yml").read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    document: dict[str, Any] = json.loads((EXAMPLES / "grafana-dashboard.json").read_text())
    return list(document["panels"])


def scraped(site: Site) -> dict[str, set[str]]:
    """Return every name in a scrape, with the labels that its samples have."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(site.admin.get("/metrics").text):
        found.setdefault(family.name, set())
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def test_rules_and_dashboard_are_made_of_metrics_and_labels_that_a_scrape_has(tmp_path: Path) -> None:
    with serving(tmp_path) as site:
        site.federation()
        token = site.device("pi")
        (task,) = site.open_round("pi")
        assert site.client(token).put(f"/v1/tasks/{task}/result", content=site.update(task)).status_code == 200
        known = scraped(site)
    queries = [rule["expr"] for rule in rules()] + [target["expr"] for panel in panels() for target in panel["targets"]]
    named = {name for query in queries for name in re.findall(r"\bedgefl_\w+", query)}
    assert named <= set(known)
    assert {name for name in known if name.startswith("edgefl_") and not name.endswith(("_total", "_sum"))} - named <= {
        "edgefl_requests",
        "edgefl_request_seconds",
        "edgefl_updates",
        "edgefl_body_bytes",
    }, "the dashboard shows everything that there is"
    for query in queries:
        for name, selectors in re.findall(r"\b(edgefl_\w+){([^}]*)}", query):
            labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selectors)) - {"instance", "job"}
            assert labels <= known[name], query


def test_every_alert_is_complete_and_explained() -> None:
    document = (EXAMPLES.parents[1] / "docs" / "operations.md").read_text()
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names) >= 8
    for rule in rules():
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"[A-Z]\w+", rule["alert"])
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"]
        assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m"))
        assert f"| {rule['alert']} |" in document


def test_the_dashboard_has_the_shape_that_grafana_reads() -> None:
    ids = [panel["id"] for panel in panels()]
    assert len(set(ids)) == len(ids) >= 8
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels()}
    assert len(places) == len(ids)
    for panel in panels():
        assert panel["title"]
        assert panel["type"] in ("timeseries", "stat")
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert [target["refId"] for target in panel["targets"]] == list("ABC")[: len(panel["targets"])]


def directives(path: Path) -> dict[str, str]:
    lines = path.read_text().replace("\\\n", " ").splitlines()
    return {name: value.strip() for name, sign, value in (line.partition("=") for line in lines) if sign}


def test_the_service_is_confined() -> None:
    found = directives(SERVICE)
    assert {name: found.get(name) for name in REQUIRED} == REQUIRED
    assert "--state %S/edgefl-coordinator" in found["ExecStart"]
    assert "insecure" not in found["ExecStart"]
    if shutil.which("systemd-analyze"):
        said = subprocess.run(
            ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(SERVICE)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert said.returncode == 0, said.stdout[-500:] + said.stderr  # at most 2.0 of 10, which it calls "OK"
