"""What a federation tells its members about samples, and what devices tell it about their software."""

import dataclasses
import json

import pytest

from coordinator.federations.lifecycle import new_key
from edgefl.federation.settings import SampleSettings
from edgefl.values import (
    Capabilities,
    Enrolment,
    FieldError,
    SampleCount,
    SampleDtype,
    SampleNormalisation,
    SampleSpec,
    dumps,
    loads,
)
from tests.coordinator.fleet import running
from tests.coordinator.http.site import Site
from tests.device_runtime.federation import bundle
from tests.values.samples import CAPABILITIES, PROFILE


def test_a_member_learns_what_a_sample_is_with_its_key_and_with_its_token(site: Site) -> None:
    key, token = new_key(site.context, "digits")[1], site.device("asks-for-it")
    with_key, with_token = (site.client(secret).get("/v1/sample") for secret in (key, token))
    assert with_key.status_code == 200
    assert with_key.content == with_token.content
    spec, manifest = loads(SampleSpec, with_key.content), bundle().manifest
    assert spec.shape == manifest.input_shape
    assert spec.dtype is SampleDtype.FLOAT32
    assert spec.classes == manifest.outputs


def test_the_agent_asks_for_it(site: Site) -> None:
    with site.agent(site.device("agent-asks")) as agent:
        assert agent.sample() == agent.sample(new_key(site.context, "digits")[1]) == bundle().sample


def test_a_federation_can_say_more_than_its_bundle(site: Site) -> None:
    names = tuple(f"digit {number}" for number in range(bundle().manifest.outputs))
    normalisation = SampleNormalisation(mean=(0.5,), std=(0.25,), scale=16)
    running(site.context, name="says-more", sample=SampleSettings(class_names=names, normalisation=normalisation))
    answer = site.client(new_key(site.context, "says-more")[1]).get("/v1/sample").json()
    assert answer["class_names"] == list(names)
    assert answer["normalisation"] == {"mean": [0.5], "std": [0.25], "scale": 16.0}


@pytest.mark.parametrize(
    ("sample", "says"),
    [
        (SampleSettings(shape=(3, 32, 32)), r"sample.shape' is \[3, 32, 32\], but the model takes"),
        (SampleSettings(classes=3), "sample.classes' is 3, but the model takes"),
        (SampleSettings(class_names=("one",)), "sample.class_names' has 1 names for"),
    ],
)
def test_a_federation_cannot_contradict_its_model(site: Site, sample: SampleSettings, says: str) -> None:
    with pytest.raises(FieldError, match=says):
        running(site.context, name="contradicts", sample=sample)


def test_capabilities_are_stored_at_enrolment_and_replaced_later(site: Site) -> None:
    key = new_key(site.context, "digits")[1]
    asked = Enrolment(
        enrolment_id="can-do", profile=PROFILE, software="edgefl-java 0.1.0", name="can-do", capabilities=CAPABILITIES
    )
    with site.agent() as agent:
        agent.token = agent.enrol(asked, key).token
        assert _stored(site, "can-do") == CAPABILITIES
        more = dataclasses.replace(CAPABILITIES, rules=(*CAPABILITIES.rules, "ditto"))
        agent.update_capabilities(more)
        assert _stored(site, "can-do") == more
        agent.token = agent.enrol(asked, key).token
        assert _stored(site, "can-do") == CAPABILITIES


def test_samples_are_stored_at_enrolment_and_replaced_later(site: Site) -> None:
    key = new_key(site.context, "digits")[1]
    asked = Enrolment(enrolment_id="counts", profile=PROFILE, software="edgefl 0", name="counts", samples=480)
    store = site.context.store.devices

    def stored() -> int | None:
        device = store.get("counts")
        assert device is not None
        return device.samples

    with site.agent() as agent:
        agent.token = agent.enrol(asked, key).token
        assert stored() == 480
        store.set_left_out({"counts": "too many samples for its budget"})
        agent.update_samples(SampleCount(samples=20))
        assert stored() == 20
        device = store.get("counts")
        assert device is not None
        assert device.left_out is None
        agent.token = agent.enrol(dataclasses.replace(asked, samples=None), key).token
        assert stored() == 20, "a client from before samples says nothing about them"
        agent.token = agent.enrol(asked, key).token
        assert stored() == 480


@pytest.mark.parametrize("count", [-1, 1.5, 2**63, "many", None])
def test_a_number_of_samples_that_cannot_be_is_refused(site: Site, count: object) -> None:
    client = site.client(site.device(f"claims-{str(count).replace('.', '-')}"))
    answer = client.put("/v1/devices/me/samples", json={"schema": "edgefl.sample_count/1", "samples": count})
    assert answer.status_code == 422


def test_an_operator_sees_what_a_device_can_run_and_why_it_is_left_out(site: Site) -> None:
    site.device("seen")
    store = site.context.store.devices
    store.set_capabilities("seen", dumps(CAPABILITIES))
    store.set_left_out({"seen": "its client edgefl-java 0.1.0 lacks the rule 'ditto'"})
    page = site.admin.get("/v1/federations/digits/devices/seen/page").json()["device"]
    listed = site.admin.get("/v1/federations/digits/devices").json()["devices"]
    for device in (page, next(device for device in listed if device["id"] == "seen")):
        assert device["capabilities"]["client"] == {"name": "edgefl-java", "version": "0.1.0"}
        assert device["left_out"] == "its client edgefl-java 0.1.0 lacks the rule 'ditto'"
    assert next(device for device in listed if device["id"] == "asleep-digits")["capabilities"] is None


def test_a_device_without_capabilities_is_one_from_before(site: Site) -> None:
    site.device("from-before")
    assert _stored(site, "from-before") is None


def test_the_coordinator_is_strict_about_what_devices_send(site: Site) -> None:
    client = site.client(site.device("misspells"))
    body = json.loads(dumps(CAPABILITIES)) | {"codec": ["dense"]}
    answer = client.put("/v1/devices/me/capabilities", json=body)
    assert answer.status_code == 422
    assert "Did you mean 'codecs'?" in answer.json()["error"]["fix"]


def _stored(site: Site, name: str) -> Capabilities | None:
    device = site.context.store.devices.get(name)
    assert device is not None
    return site.context.repository.capabilities(device)


def test_what_a_device_says_about_its_software_is_small() -> None:
    """The coordinator reads it for every device when it plans a round."""
    with pytest.raises(FieldError, match="characters in its engines, rules and codecs"):
        dataclasses.replace(CAPABILITIES, rules=tuple(f"{number:03}" + "a" * 100 for number in range(100)))
    engine = dataclasses.replace(CAPABILITIES.engines[0], version="1" * 200)
    with pytest.raises(FieldError, match="engines' has 17 entries"):
        dataclasses.replace(CAPABILITIES, engines=(engine,) * 17)
