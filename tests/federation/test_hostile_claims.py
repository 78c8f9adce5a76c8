"""Whatever a device claims about itself, the others get their tasks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from edgefl.artifacts.submodel import bundle_weights
from edgefl.federation.client_selection import plan_round
from edgefl.federation.participants import participant_of
from edgefl.federation.seeds import personalisation_context, planning_context
from edgefl.federation.settings import FederationSettings, RoundSettings
from edgefl.planning import Correction, corrected, refused
from edgefl.strategies import Participant, strategy_of
from edgefl.values import DeviceProfile, LocalWork, Prediction, Reason, Telemetry
from tests.device_runtime.federation import bundle
from tests.federation.hostile import COUNTS, profiles, telemetries
from tests.strategies.contract import CASES
from tests.values.samples import PROFILE

SETTINGS = FederationSettings(
    name="hostile", rounds=RoundSettings(count=4, deadline=600), work=LocalWork(epochs=1, batch_size=32)
)
HONEST = ("one", "two", "three")


@pytest.mark.parametrize("case", sorted(CASES))
@effort(max_examples=15)
@given(profile=profiles(), samples=st.one_of(st.none(), COUNTS), number=st.integers(0, 3))
def test_a_hostile_profile_never_costs_the_others_their_tasks(
    case: str, profile: DeviceProfile, samples: int | None, number: int
) -> None:
    name, chosen = CASES[case]
    strategy = strategy_of(name, chosen)
    model = strategy.begin(bundle().graph, bundle_weights(bundle()))
    claimed = dict.fromkeys(HONEST, (PROFILE, 100)) | {"hostile": (profile, samples)}

    def participant(device: str) -> Participant:
        known, count = claimed[device]
        return participant_of(SETTINGS, device, known, samples=count)

    with np.errstate(all="raise", under="ignore"):
        planned = plan_round(strategy, model, list(claimed), 4, planning_context(SETTINGS, number), participant, str)
        assert set(HONEST) <= planned.tasks.keys()
        personal = strategy.personalise(model, list(map(participant, claimed)), personalisation_context(SETTINGS))
    assert not personal or set(HONEST) <= personal.keys()


@given(
    st.lists(st.one_of(telemetries(), st.sampled_from(list(Reason))), max_size=20),
    st.builds(Prediction, seconds=st.none() | st.just(5e-324), peak_bytes=st.none() | st.just(1)),
)
def test_hostile_telemetry_gives_corrections_that_a_plan_can_use(
    claims: list[Telemetry | Reason], predicted: Prediction
) -> None:
    known = Correction()
    for claim in claims:
        known = corrected(known, predicted, claim) if isinstance(claim, Telemetry) else refused(known, claim)
    budget = participant_of(SETTINGS, "device", PROFILE, correction=known).budget
    assert budget.round_seconds is not None
    assert budget.round_seconds >= 300 / 32
