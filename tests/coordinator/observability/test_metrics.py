"""Metrics: requests, updates and what federations do."""

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from coordinator.http.app import make_app
from tests.coordinator.fleet import make_context
from tests.coordinator.http.site import Site


def numbers(site: Site) -> dict[tuple[str, ...], float]:
    """Return every sample by its name and the values of its labels, these in the order of the labels' names."""
    text = site.admin.get("/metrics").text
    families = text_string_to_metric_families(text)
    samples = [sample for family in families for sample in family.samples]
    return {(one.name, *(one.labels[name] for name in sorted(one.labels))): one.value for one in samples}


def test_metrics_count_requests_updates_and_what_federations_do(site: Site) -> None:
    site.federation("counted")
    token = site.device("counter", "counted")
    (task_id,) = site.open_round("counter", federation="counted")
    client, path = site.client(token), f"/v1/tasks/{task_id}/result"
    body = site.update(task_id)
    before = numbers(site)
    for content in (body, body, b"nothing"):
        client.put(path, content=content)
    client.get("/v1/nothing")
    after = numbers(site)

    def grew(*key: str) -> float:
        return after[key] - before.get(key, 0.0)

    route = "/v1/tasks/{task_id}/result"
    assert grew("edgefl_requests_total", "PUT", route, "200") == 2
    assert grew("edgefl_requests_total", "PUT", route, "409") == 1
    assert grew("edgefl_requests_total", "GET", "(none)", "404") == 1
    assert grew("edgefl_request_seconds_count", "PUT", route) == 3
    assert grew("edgefl_updates_total", "accepted") == 1
    assert grew("edgefl_updates_total", "already have it") == 1
    assert grew("edgefl_updates_total", "rejected") == 1
    assert grew("edgefl_body_bytes_total", "in") == 2 * len(body) + len(b"nothing")
    assert grew("edgefl_body_bytes_total", "out") > 0
    assert after["edgefl_open_polls",] == 0
    assert after["edgefl_devices", "counted"] == 2
    assert after["edgefl_round_updates", "counted"] == 1
    assert after["edgefl_rounds_done", "counted"] == 0
    assert after["edgefl_federation", "counted", "running"] == 1


def test_two_apps_in_one_process_count_for_themselves(folder: Path, site: Site) -> None:
    other = make_app(make_context(folder))
    site.client().get("/healthz")
    assert b'route="/healthz"' not in other.state.services.metrics.text()
    other.state.services.context.store.close()


def test_a_method_that_is_none_makes_no_new_label(site: Site) -> None:
    site.client().request("BREW", "/healthz")
    assert not any("BREW" in key for key in numbers(site))
