"""What a device is answered."""

import dataclasses
import json

from coordinator.polling.poll_response import next_response
from edgefl.values import dumps
from tests.coordinator.stage import Stage
from tests.values.samples import CAPABILITIES


def test_fields_that_were_added_to_plans_go_only_to_devices_with_capabilities(stage: Stage) -> None:
    """Agents from before capabilities refuse a plan with a field that they do not know."""
    before, _ = stage.begin(2)
    stage.advance(2)
    now = dataclasses.replace(before, capabilities=dumps(CAPABILITIES))
    older, newer = (json.loads(next_response(stage.context, device).body)["plan"] for device in (before, now))
    assert set(newer) - set(older) == {"tensors"}
    assert newer["tensors"].startswith("sha256:")
