"""The minimum that the work takes in PyTorch: two processes with one thread each, and nothing but their loop.

    python -m benchmarks.peers.bare_loop FOLDER

Each process trains half of a round's clients and returns the sum of their weights.
"""

import multiprocessing
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from benchmarks.peers.case import chosen_clients, leave, read_case
from benchmarks.peers.torch_client import Client

__all__ = ["main"]


def main(folder: Path) -> None:
    """Do the rounds."""
    case, _, _, initial = read_case(folder)
    context = multiprocessing.get_context("spawn")
    ends, weights = [], initial
    pipes, workers = [], []
    for _ in range(case.workers):
        mine, theirs = context.Pipe()
        workers.append(context.Process(target=_work, args=(folder, theirs), daemon=True))
        workers[-1].start()
        pipes.append(mine)
    for number in range(case.rounds):
        chosen = chosen_clients(case, number)
        for place, pipe in enumerate(pipes):
            pipe.send((chosen[place :: len(pipes)], weights, number))
        sums = [pipe.recv() for pipe in pipes]
        weights = {name: sum(part[name] for part in sums) / len(chosen) for name in initial}
        ends.append(time.time())
    for pipe in pipes:
        pipe.send(None)
    for worker in workers:
        worker.join()
    leave(folder, "bare", ends, weights)


def _work(folder: Path, pipe: Connection) -> None:
    client = Client(folder)
    while (told := pipe.recv()) is not None:
        chosen, arrays, number = told
        weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
        sums = {name: torch.zeros_like(tensor) for name, tensor in weights.items()}
        for one in chosen:
            for name, tensor in client.train(one, weights, seed=1000 * number + one).items():
                sums[name] += tensor
        pipe.send({name: tensor.numpy() for name, tensor in sums.items()})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
