"""The coordinator that the suite plays, where nothing goes wrong."""

import json

from edgefl.conformance.messages import Exchange
from edgefl.conformance.stage import Stage
from edgefl.conformance.tasks import conformance_measurement
from edgefl.values import Measurement, digest_of, from_json


def asked(stage: Stage, path: str, secret: str, **headers: str) -> tuple[int, bytes]:
    request = Exchange("GET", path, {}, {"authorization": f"Bearer {secret}", **headers}, connection=1)
    answer = stage.answer(request)
    return answer.status, answer.body


def test_a_client_can_measure_itself_before_it_enrols() -> None:
    stage = Stage()
    stage.begin_act("test")
    status, body = asked(stage, "/v1/measurement", stage.key)
    measurement = from_json(Measurement, json.loads(body))
    assert (status, measurement) == (200, conformance_measurement().measurement)
    for digest in {name for case in measurement.cases for name in (case.graph, case.weights, case.submodel)}:
        status, body = asked(stage, f"/v1/measurement/{digest}", stage.key)
        assert (status, digest_of(body)) == (200, digest)
        assert asked(stage, f"/v1/measurement/{digest}", stage.key, range="bytes=5-") == (206, body[5:])
        assert asked(stage, f"/v1/artifacts/{digest}", stage.key)[0] == 401, "a join key opens no artifacts of tasks"


def test_what_it_does_not_measure_with_is_not_there() -> None:
    stage = Stage()
    stage.begin_act("test")
    assert asked(stage, f"/v1/measurement/sha256:{'0' * 64}", stage.key)[0] == 404
    assert asked(stage, "/v1/measurement", "edgefl-key-another")[0] == 401
