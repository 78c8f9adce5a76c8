"""The OpenAPI document: whole, true to what is answered, and asked for everything that it allows and forbids."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.strategies import SearchStrategy
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from coordinator.federations.lifecycle import new_key
from coordinator.federations.tokens import OperatorRole
from coordinator.http.authentication import Caller
from coordinator.http.routes.registration import CALLER
from coordinator.http.routes.tasks import TENSORS
from coordinator.http.server_settings import ServerLimits
from coordinator.polling import long_poll
from edgefl.values import from_json, kinds, to_json
from tests.coordinator.http.site import Site, serving
from tests.device_runtime.federation import bundle
from tests.documents.messages import MESSAGES, parts_of, rows_of
from tests.values import samples

SECTIONS = {
    "strategy": "StrategyChoice",
    "work": "LocalWork",
    "rounds": "Rounds",
    "selection": "Selection",
    "buffering": "Buffering",
    "evaluation": "Evaluation",
    "limits": "Limits",
    "budget": "Caps",
    "sample": "SampleSettings",
}
"""The sections of a federation's settings, and their schemas."""
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    limits = ServerLimits(requests_rate=1e6, requests_burst=10**6, failures_burst=10**6)
    with serving(tmp_path_factory.mktemp("openapi"), limits) as running:
        running.federation()
        running.device("pi-1")
        running.open_round("pi-1")
        yield running


@pytest.fixture(scope="module")
def document(site: Site) -> dict[str, Any]:
    answer: dict[str, Any] = site.client().get("/openapi.json").json()
    return answer


@pytest.fixture(scope="module")
def tokens(site: Site) -> dict[str, str]:
    key = new_key(site.context, "digits")[1]
    token = "token-of-pi-1"
    return {
        Caller.PUBLIC: "",
        Caller.JOINER: key,
        Caller.DEVICE: token,
        Caller.MEMBER: token,
        Caller.VIEWER: site.tokens[OperatorRole.VIEWER],
        Caller.ADMIN: site.admin_token,
    }


@schemathesis.serializer(TENSORS, "application/zip")
def _bytes(context: schemathesis.SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value, default=str).encode()


KNOWN = {"name": "digits", "device_id": "pi-1", "task_id": "digits-0-pi-1", "number": 0}


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("known", [{}, KNOWN], ids=["anywhere", "what is there"])
def test_whatever_is_asked_the_answer_is_as_described_and_errors_say_what_to_do(
    site: Site,
    document: dict[str, Any],
    tokens: dict[str, str],
    mode: GenerationMode,
    known: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(long_poll, "LONGEST_WAIT", 0.01)
    api = schemathesis.openapi.from_dict(document)
    api.config.update(base_url=site.url)
    with requests.Session() as session:
        for found in api.get_all_operations():
            assert isinstance(found, Ok)
            operation = found.ok()
            places = {name: value for name, value in known.items() if f"{{{name}}}" in operation.path}
            session.headers["Authorization"] = f"Bearer {tokens[operation.definition.raw[CALLER]]}"
            if "event-stream" in json.dumps(operation.definition.raw["responses"]) and known:
                continue  # it never ends; tests of the page read it
            if places or not known:
                ask_for(operation.as_strategy(mode, path_parameters=places or None), session)


def ask_for(cases: SearchStrategy[Any], session: requests.Session) -> None:
    """Ask some cases of one operation."""

    @settings(max_examples=6, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(case=cases)
    def ask(case: schemathesis.Case[Any]) -> None:
        answer = case.call(session=session)
        case.validate_response(answer, checks=CHECKS)
        if answer.status_code >= 400:
            error = json.loads(answer.content)["error"]
            assert set(error) == {"problem", "fix"}
            assert all(error.values())

    with contextlib.suppress(Unsatisfiable):  # a request without parameters cannot be wrong
        ask()


def test_every_reference_of_the_document_leads_somewhere(document: dict[str, Any]) -> None:
    def references(part: Any) -> Iterator[str]:
        if isinstance(part, dict):
            yield from (part[name] for name in part if name == "$ref")
            for value in part.values():
                yield from references(value)
        elif isinstance(part, list):
            for value in part:
                yield from references(value)

    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert set(references(document)) <= known
    assert all(CALLER in operation for path in document["paths"].values() for operation in path.values())


def test_schemas_keep_their_published_names(document: dict[str, Any]) -> None:
    """Clients are generated from them: they must not change with the names of classes."""
    settings = document["components"]["schemas"]["FederationSettings"]["properties"]
    references = {name: settings[name].get("$ref") or settings[name]["anyOf"][0]["$ref"] for name in SECTIONS}
    assert {name: reference.rpartition("/")[2] for name, reference in references.items()} == SECTIONS


SENT = ["enrolment", "refusal", "device_profile", "capabilities", "local_result"]
ANSWERED = ["enrolled", "assignment", "receipt", "sample", "submodel"]


@pytest.mark.parametrize("kind", [*SENT, *ANSWERED])
def test_documents_fit_their_schema(document: dict[str, Any], kind: str) -> None:
    jsonschema = pytest.importorskip("jsonschema_rs")
    value = samples.SAMPLES[kind]
    schema = {"$ref": f"#/components/schemas/{type(value).__name__}", "components": document["components"]}
    validator = jsonschema.validator_for(schema)
    data = to_json(value)
    assert validator.is_valid(data), list(validator.iter_errors(data))
    assert validator.is_valid(data | {"more": 1}) == (kind in ANSWERED)  # clients ignore what they do not know
    assert not validator.is_valid({key: item for key, item in data.items() if key != "schema"})
    assert from_json(type(value), data) == value


def test_the_model_graph_fits_its_schema(document: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema_rs")
    schema = {"$ref": "#/components/schemas/ModelGraph", "components": document["components"]}
    assert jsonschema.validator_for(schema).is_valid(to_json(bundle().graph))


def test_every_message_of_the_documents_has_exactly_its_fields_here(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for kind in MESSAGES:
        cls = kinds()[kind].cls
        for part in (cls, *parts_of(cls)):
            schema = schemas[part.__name__]
            rows = rows_of(part)
            assert set(schema["properties"]) - {"schema"} == set(rows), part
            required = {name for name, (_, default, _) in rows.items() if default == "required"}
            assert set(schema["required"]) - {"schema"} == required, part


def test_a_field_that_may_be_left_out_says_what_that_means(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    work = schemas["LocalWork"]["properties"]
    assert [work[name]["default"] for name in ("epochs", "batch_size", "most_steps")] == [1, 32, None]
    assert schemas["Assignment"]["properties"]["finished"]["default"] is False
    assert "default" not in schemas["ClientPlan"]["properties"]["task_id"]
