"""Export PreResNet18 once, then cut personal half-width submodels of it, ready to send, in a process without torch."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODEL = "preresnet18"
ROUNDS = 12


def main() -> None:
    """Print both times."""
    if len(sys.argv) > 1:
        _submodels(Path(sys.argv[1]))
        return
    from edgefl.artifacts.bundle import write_bundle
    from export.bundle import make_bundle
    from export.model_source import open_source

    source = open_source(MODEL)
    start = time.perf_counter()
    bundle = make_bundle(source.model, source.name, source.example)
    print(f"export of {MODEL}: {time.perf_counter() - start:.1f} s")
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(bundle, Path(folder))
        subprocess.run([sys.executable, "-m", "benchmarks.export", folder], check=True)


def _submodels(folder: Path) -> None:
    import numpy as np

    from edgefl.artifacts.bundle import read_bundle
    from edgefl.artifacts.submodel import bundle_weights, make_submodel
    from edgefl.masks import freeze, random_channels

    bundle = read_bundle(folder)
    weights, generator = bundle_weights(bundle), np.random.default_rng(0)
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        mask = random_channels(bundle.graph, 0.5, generator)
        make_submodel(bundle, freeze(mask, bundle.graph.trainable_layers[:1]), weights)
        seconds.append(time.perf_counter() - start)
    torch_word = "with" if "torch" in sys.modules else "without"
    print(f"personal submodel: median {statistics.median(seconds) * 1e3:.0f} ms of {ROUNDS}, {torch_word} torch")


if __name__ == "__main__":
    main()
