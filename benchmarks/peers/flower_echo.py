"""A Flower app whose clients send back their weights slightly changed. It is copied into a folder of its own.

A client adds a small number of its own, so that no two bodies are the same and nobody can send the name of one instead.

The run's configuration says where the first weights are, where the times of the rounds go, and how many there are.
"""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

__all__ = ["Timed", "client_app", "server_app"]

client_app = ClientApp()
server_app = ServerApp()


class Timed(FedAvg):  # type: ignore[misc]
    """Flower's federated averaging, which notes when each round ended."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.ends: list[float] = []

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
        """Average, and look at the clock."""
        result = super().aggregate_train(server_round, replies)
        self.ends.append(time.time())
        return result


@client_app.train()  # type: ignore[untyped-decorator]
def echo(message: Message, context: Context) -> Message:
    """Send the weights back, with a little added."""
    little = np.float32(1e-3 * (1 + int(context.node_config["number"])))
    given: ArrayRecord = message.content["arrays"]
    arrays = ArrayRecord({name: Array(array.numpy() + little) for name, array in given.items()})
    content = RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": 100})})
    return Message(content=content, reply_to=message)


@server_app.main()  # type: ignore[untyped-decorator]
def serve(grid: Grid, context: Context) -> None:
    """Do the rounds."""
    said = context.run_config
    with np.load(str(said["weights"])) as stored:
        arrays = ArrayRecord({name: Array(stored[name]) for name in stored})
    nodes = int(said["clients"])
    strategy = Timed(fraction_evaluate=0.0, min_train_nodes=nodes, min_available_nodes=nodes)
    strategy.start(grid, arrays, num_rounds=int(said["rounds"]))
    Path(str(said["ends"])).write_text(json.dumps(strategy.ends), encoding="utf-8")
