"""Who the devices of a simulation are."""

import numpy as np
import pytest

from edgefl.simulation import DeviceClass, fleet_of, simulated_profile
from tests.device_runtime.federation import digits
from tests.simulation.fleets import settings_of


def test_classes_get_their_shares_of_the_fleet() -> None:
    classes = (DeviceClass(name="pi", share=3), DeviceClass(name="phone", share=1, speed=4.0))
    fleet = fleet_of(digits(), clients=20, classes=classes, seed=2)
    names = [device.device_id.partition("-")[0] for device in fleet]
    assert (names.count("pi"), names.count("phone")) == (15, 5)
    assert names != sorted(names), "classes must not go with the order of the samples"
    assert len({device.device_id for device in fleet}) == 20


def test_no_device_trains_on_what_it_is_judged_by() -> None:
    for device in fleet_of(digits(), clients=10, scheme="dirichlet:0.3", seed=1):
        used = np.concatenate([device.data.split.train, device.data.split.validation])
        assert len(device.test)
        assert not np.intersect1d(used, device.test).size


def test_published_test_samples_have_a_devices_own_labels() -> None:
    data = digits()
    for device in fleet_of(data, clients=10, scheme="labels:2", seed=1, matched=20):
        assert device.test_part == "test"
        own = set(data.train.labels[device.data.split.train])
        assert set(data.test.labels[device.test]) <= own


def test_a_faster_device_is_predicted_to_be_faster() -> None:
    slow, fast = (simulated_profile(DeviceClass(speed=speed)).cost for speed in (0.5, 2.0))
    counts = {"forward_multiply_adds": 1000, "backward_multiply_adds": 2000, "activation_bytes": 0}
    ratio = slow.step_seconds(**counts, trained_parameters=0) / fast.step_seconds(**counts, trained_parameters=0)
    assert ratio == pytest.approx(4)


def test_the_last_round_is_always_evaluated() -> None:
    assert [settings_of(rounds=3, evaluate_every=3).evaluates(number) for number in range(3)] == [
        False,
        False,
        True,
    ]
