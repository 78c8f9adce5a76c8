"""The same rounds in Flower's simulation: its FedAvg, its Ray backend with one worker a core.

    python -m benchmarks.peers.flower_rounds FOLDER

`run_simulation` is the lightest of its ways to start: `flwr run` does the same behind a SuperLink of its own. A worker
keeps model and data in memory between clients.
"""

import sys
from pathlib import Path

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation

from benchmarks.peers.case import Case, leave, read_case
from benchmarks.peers.flower_echo import Timed
from benchmarks.peers.torch_client import client_in

__all__ = ["main"]


def _client_app(folder: Path) -> ClientApp:
    app = ClientApp()

    @app.train()  # type: ignore[untyped-decorator]
    def train(message: Message, context: Context) -> Message:
        client, number = client_in(folder), int(context.node_config["partition-id"])
        given = message.content["arrays"].to_torch_state_dict()
        seed = 1000 * int(message.content["config"]["server-round"]) + number
        trained = client.train(number, given, seed)
        metrics = MetricRecord({"num-examples": client.case.samples})
        return Message(content=RecordDict({"arrays": ArrayRecord(trained), "metrics": metrics}), reply_to=message)

    return app


def _server_app(folder: Path, case: Case) -> ServerApp:
    app = ServerApp()

    @app.main()  # type: ignore[untyped-decorator]
    def serve(grid: Grid, context: Context) -> None:
        initial = {name: torch.from_numpy(array) for name, array in read_case(folder)[3].items()}
        share = case.per_round / case.clients
        strategy = Timed(fraction_train=share, fraction_evaluate=0.0, min_available_nodes=case.clients)
        result = strategy.start(grid, ArrayRecord(initial), num_rounds=case.rounds)
        trained = result.arrays.to_torch_state_dict()
        leave(folder, "flower", strategy.ends, {name: tensor.numpy() for name, tensor in trained.items()})

    return app


def main(folder: Path) -> None:
    """Do the rounds."""
    case = read_case(folder)[0]
    resources = {"num_cpus": 1, "num_gpus": 0.0}
    limits = {"num_cpus": case.workers, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    run_simulation(
        server_app=_server_app(folder, case),
        client_app=_client_app(folder),
        num_supernodes=case.clients,
        backend_config={"client_resources": resources, "init_args": limits},
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
