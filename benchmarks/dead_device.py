"""How one dead device of ten delays a round: it takes its task and never responds.

    python -m benchmarks.dead_device [--deadline 5] [--rounds 3]

Ten simulated devices over HTTP; one of them dies in the first round. Printed: how long each round was open, why it
closed, and how many updates it has. A round may be open until its deadline, and not longer.
"""

import argparse
import tempfile
import threading
from pathlib import Path

from coordinator.federations.lifecycle import Verb, create, move, new_key
from coordinator.rounds.context import Context
from device_runtime.agent.client import CoordinatorClient
from device_runtime.agent.transport import HttpTransport
from edgefl.artifacts.bundle import pack_bundle
from edgefl.federation.settings import FederationSettings, RoundSettings, SelectionSettings
from edgefl.values import Enrolment
from tests.coordinator.http.site import serving
from tests.coordinator.simulated_device import SimulatedDevice
from tests.device_runtime.federation import bundle
from tests.values.samples import PROFILE

_NAME = "dead"


def main() -> None:
    """Run the federation, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deadline", type=float, default=5.0, help="seconds")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as site:
        settings = FederationSettings(
            name=_NAME,
            rounds=RoundSettings(count=args.rounds, deadline=args.deadline, at_least=5),
            selection=SelectionSettings(devices=10, wait_for=9),
        )
        create(site.context, settings, pack_bundle(bundle()))
        _, key = new_key(site.context, _NAME)
        _die_in_the_first_round(site.context, site.url, key)
        devices = [SimulatedDevice(f"device-{n}", key, [site.url], 0.001 * n, 10) for n in range(9)]
        threads = [threading.Thread(target=device.run, args=(threading.Event(),)) for device in devices]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        _report(site.context, args.deadline)


def _die_in_the_first_round(context: Context, url: str, key: str) -> None:
    """Let a device join and wait for a task, in a thread that ends with it."""
    transport = HttpTransport(url)
    client = CoordinatorClient(transport)
    asked = Enrolment(enrolment_id="enrolment-dead", profile=PROFILE, software="simulated", name="device-dead")
    client.token = client.enrol(asked, key).token
    move(context, _NAME, Verb.START)

    def take_and_die() -> None:
        while client.poll(1.0).plan is None:
            pass
        transport.close()

    threading.Thread(target=take_and_die, daemon=True).start()


def _report(context: Context, deadline: float) -> None:
    for one in context.store.rounds.of(_NAME):
        open_seconds = (one.closed_at or 0.0) - one.opened_at
        updates = context.store.tasks.counts(_NAME, one.number).done
        because = f"closed because of {one.closed_because}"
        print(f"round {one.number}: open for {open_seconds:5.2f} s of {deadline:g}, {because}, {updates} updates")


if __name__ == "__main__":
    main()
