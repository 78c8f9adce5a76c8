"""The evaluation of the global model between rounds."""

import json
from typing import Any

import numpy as np
import pytest

from coordinator.rounds.evaluation import Evaluator
from coordinator.rounds.state_machine import RoundStateMachine
from coordinator.storage.records import RoundState
from edgefl.artifacts.bundle import INFER, Bundle
from edgefl.artifacts.submodel import bundle_weights
from edgefl.errors import DataError, SchemaError
from edgefl.federation.settings import (
    EvaluationSettings,
)
from edgefl.federation.settings import RoundSettings as RoundSettings
from tests.artifacts.hostile_graphs import HOSTILE, spoiled
from tests.coordinator.stage import Stage
from tests.device_runtime.federation import bundle


def test_evaluation_that_fails_is_told_and_stops_no_round(stage: Stage) -> None:
    devices = stage.begin(evaluation=EvaluationSettings(data="digits"))
    stage.advance()
    for device in devices:
        stage.do(device)
    stage.advance()
    assert stage.federation is not None

    def fail(weights: object) -> Any:
        raise DataError("the data are gone", fix="Bring them back.")

    RoundStateMachine(stage.context, stage.federation, fail).advance()
    assert stage.state == RoundState.DONE
    assert "the data are gone" in json.loads(stage.round.report)["evaluation_error"]


def test_the_global_model_is_evaluated_on_the_coordinators_data(stage: Stage) -> None:
    devices = stage.begin(evaluation=EvaluationSettings(data="digits"))
    stage.advance()
    for device in devices:
        stage.do(device, shift=0.0)
    stage.advance()
    assert stage.federation is not None
    evaluator = Evaluator(bundle(), EvaluationSettings(data="digits"))
    RoundStateMachine(stage.context, stage.federation, evaluator.score).advance()
    report = json.loads(stage.round.report)
    assert 0 <= report["accuracy"] <= 1
    assert report["test_samples"] > 100


@pytest.mark.parametrize("how", HOSTILE)
def test_a_hostile_graph_is_refused_before_it_is_evaluated(how: str) -> None:
    """A bundle may have been stored before bundles were checked."""
    files = {**bundle().files, INFER: spoiled(bundle().files[INFER], how)}
    stored = Bundle(bundle().manifest, bundle().graph, files)
    with pytest.raises(SchemaError, match="the graph"):
        Evaluator(stored, EvaluationSettings(data="digits"))


def test_several_networks_are_judged_by_the_mean_of_their_logits() -> None:
    evaluator, whole = Evaluator(bundle(), EvaluationSettings(data="digits")), bundle_weights(bundle())
    opposite = {name: -array if name.startswith("9.") else array for name, array in whole.items()}
    alone, twice = evaluator.score([whole]), evaluator.score([whole, whole])
    assert twice.loss == pytest.approx(alone.loss)
    assert evaluator.score([whole, opposite]).loss == pytest.approx(np.log(10))  # logits that cancel say nothing
