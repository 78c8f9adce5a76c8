"""A process that compiles programs, `python -m export.executorch.compile_worker`, which `compilation.py` starts.

One JSON object per line. The first line from the parent says which model to build; each further one is a specification.
Programs go into the cache; the reply to each specification says how long it took, or why there is none.
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgefl.errors import EdgeFLError
from edgefl.model_graph import ModelGraph
from edgefl.values import ProgramSpec, from_json

__all__ = ["main"]


def main() -> None:
    """Serve the parent until its end of the pipe closes."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever libraries print is not a reply
    compiler: Any = None
    given = json.loads(sys.stdin.readline())
    for line in sys.stdin:
        began = time.perf_counter()
        try:
            compiler = _compiler(given) if compiler is None else compiler
            _compile(compiler, from_json(ProgramSpec, json.loads(line)), Path(given["cache"]))
            reply: Mapping[str, Any] = {"seconds": time.perf_counter() - began}
        except EdgeFLError as error:
            reply = {"failed": str(error)}
        except Exception as error:  # one program of a strange model must not stop the others
            reply = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


def _compiler(given: Mapping[str, Any]) -> Any:
    from export.executorch.program import ProgramCompiler
    from export.losses import Loss
    from export.model_source import open_source

    source = open_source(given["target"], classes=given["classes"], sample=given["sample"], seed=given["seed"])
    return ProgramCompiler(source.model, source.example, from_json(ModelGraph, given["graph"]), Loss(given["loss"]))


def _compile(compiler: Any, spec: ProgramSpec, folder: Path) -> None:
    from export.executorch.program_cache import ProgramCache

    ProgramCache(folder).put(*compiler.compile(spec))


if __name__ == "__main__":
    main()
