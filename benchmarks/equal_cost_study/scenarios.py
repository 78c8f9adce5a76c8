"""Fleets of ten devices, half of them weak, and how the data is divided among them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from edgefl.simulation import DeviceClass

__all__ = ["SCENARIOS", "Scenario"]

_STRONG = DeviceClass(name="strong", idle_watts=1.5, busy_watts=6.0)
_WEAK = replace(_STRONG, name="weak", speed=0.125)
_SMALL = replace(_STRONG, name="small", memory_bytes=70 * 2**20)
_HOME = replace(_STRONG, name="home", download_bytes_per_second=1e6, upload_bytes_per_second=125e3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Data, devices and time."""

    name: str
    about: str
    data: str
    model: str
    kinds: tuple[DeviceClass, ...]
    """Kinds of devices, equally many of each."""
    scheme: str = "iid"
    own_classes: bool = False
    """Whether each kind of devices has classes of its own, as many as the others."""
    clients: int = 10
    train: int = 20_000
    """Training samples that are used; all test samples are."""
    steps: int = 8
    """Of a round, at the most."""
    batch: int = 32
    rounds: int = 60
    """The time of a run: of so many rounds in which the fastest device trains the whole model."""
    transfers: float = 0.0
    """Seconds of a round for the network, beside training."""


def _scenarios() -> dict[str, Scenario]:
    found = {}
    for data, model in (("cifar10", "cnn4_pooled_32"), ("fashion-mnist", "cnn4_pooled_28")):
        slow, small = "half are eight times slower", "half have little memory"
        cases = (
            ("compute-own", f"{slow}, with classes of their own", (_STRONG, _WEAK), "iid", True),
            ("compute-dirichlet", f"{slow}, Dirichlet 0.3", (_STRONG, _WEAK), "dirichlet:0.3", False),
            ("compute-iid", f"{slow}, IID", (_STRONG, _WEAK), "iid", False),
            ("memory-own", f"{small}, with classes of their own", (_STRONG, _SMALL), "iid", True),
            ("equal-dirichlet", "equal devices, Dirichlet 0.3", (_STRONG,), "dirichlet:0.3", False),
        )
        for name, about, kinds, scheme, own in cases:
            key = f"{name}/{data}"
            found[key] = Scenario(
                name=key, about=f"{data}: {about}", data=data, model=model, kinds=kinds, scheme=scheme, own_classes=own
            )
        key = f"uplink-dirichlet/{data}"
        found[key] = Scenario(
            name=key,
            about=f"{data}: home uplinks of 125 KB/s, Dirichlet 0.3",
            data=data,
            model=model,
            kinds=(_HOME,),
            scheme="dirichlet:0.3",
            transfers=4.0,
        )
    return found


SCENARIOS: Mapping[str, Scenario] = _scenarios()
"""By name."""
