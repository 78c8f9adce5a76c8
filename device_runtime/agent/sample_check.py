"""Asks what a sample of the federation is, so that a device checks its own data before it joins and at every start.

The description comes from a stranger: `SampleSpec` bounds every part of it. It is kept in the device's home, for starts
without a network.
"""

from device_runtime.agent.agent_home import AgentHome
from device_runtime.agent.client import CoordinatorClient, UnknownDeviceError
from device_runtime.agent.transport import UnreachableError
from edgefl.values import SampleSpec

__all__ = ["federation_sample"]


def federation_sample(home: AgentHome, client: CoordinatorClient, key: str | None) -> SampleSpec | None:
    """Return what a sample is; None if the coordinator is from before this question, or there is nobody to ask for.

    A device that has joined asks with its token, or with its key if the token is no longer known, and goes on with what
    it was told last if there is no answer. A new device needs one: it could not enrol either.
    """
    identity = home.identity()
    token = None if identity is None else identity.token
    try:
        said = _asked(client, token, key)
    except UnreachableError:
        if token is None:
            raise
        return home.sample()
    home.save_sample(said)
    return said


def _asked(client: CoordinatorClient, token: str | None, key: str | None) -> SampleSpec | None:
    if token is not None:
        try:
            return client.sample(token)
        except UnknownDeviceError:
            if key is None:
                raise
    return None if key is None else client.sample(key)
