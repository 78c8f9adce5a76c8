"""A racer for tests: one that works, or one that cannot start for a given reason."""

import os
import sys

from edgefl.bench.process_loop import Workload, serve_requests
from edgefl.errors import EdgeFLError


def main() -> None:
    match sys.argv[1]:
        case "works":
            serve_requests(lambda: Workload(_noisy, {"engine": "a stub"}, lambda file: {"right": 0.5}))
        case "blocked":
            sys.modules["torch"] = None  # type: ignore[assignment]
            serve_requests(_import_torch)
        case "refuses":
            serve_requests(_refuse)
        case "dies":
            sys.exit("a last word")


def _noisy() -> None:
    """Print what must not disturb the protocol, as a library might."""
    sys.stdout.write("noise\n")
    sys.stdout.flush()
    os.write(1, b"more noise\n")


def _import_torch() -> Workload:
    __import__("torch")
    return Workload(_noisy)


def _refuse() -> Workload:
    raise EdgeFLError("the file is bad", fix="Give another.")


if __name__ == "__main__":
    main()
