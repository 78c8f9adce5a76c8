"""This agent does what the golden file says after every kind of answer."""

from collections.abc import Callable
from typing import Any

import pytest

from device_runtime.agent.client import BusyError, CoordinatorClient, RejectedError, UnknownDeviceError
from device_runtime.agent.transport import Reply, Request, Sink
from edgefl.values import ClientPlan, Reason, Refusal, RuleSettings
from tests.golden.encoding import cases_in

DIGEST = "sha256:" + "0" * 64
PLAN = ClientPlan(
    task_id="task-7",
    device_id="pi",
    round=0,
    model=DIGEST,
    mask=DIGEST,
    rule=RuleSettings(name="sgd"),
    deadline_seconds=60,
    seed=1,
)


class _Answering:
    def __init__(self, case: dict[str, Any]) -> None:
        headers = {name.lower(): value for name, value in case["headers"].items()}
        self._reply = Reply(case["status"], headers, case["body"].encode())

    def send(self, request: Request, sink: Sink | None = None) -> Reply:
        return self._reply

    def close(self) -> None:
        pass


@pytest.mark.parametrize("case", cases_in("problems.json"), ids=lambda case: case["name"])
def test_the_agent_does_what_an_answer_asks_for(case: dict[str, Any]) -> None:
    client = CoordinatorClient(_Answering(case), "token")
    ask: dict[str, Callable[[], object]] = {
        "poll": lambda: client.poll(0),
        "result": lambda: client.upload("task-7", b"body"),
        "refusal": lambda: client.refuse(PLAN, Refusal(reason=Reason.POWER, message="no")),
        "download": lambda: client.download(DIGEST, lambda status, piece: None),
    }
    did, after = "done", None
    try:
        ask[case["request"]]()
    except BusyError as error:
        did, after = "retry", error.retry_seconds
    except RejectedError:
        did = "drop"
    except UnknownDeviceError:
        did = "stop"
    assert (did, after) == (case["do"], case["retry_after"])
