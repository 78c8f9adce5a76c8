"""What ExecuTorch does with damaged programs: it refuses them, runs them, or ends its process.

    python -m benchmarks.damaged_programs [--programs 150] [--bits 1] [--seed 0]

Bits of the built-in programs are flipped at random, and each program takes two training steps in a process of its own.
"""

import argparse
import os
import random
import signal
from collections import Counter

from device_runtime.engines import Engine, ThreadSettings, open_engine
from device_runtime.profiler.cases import Case, CaseProgram, Trial, load_step
from device_runtime.profiler.executorch_cases import program_cases
from edgefl.errors import EdgeFLError

_MODELS = ("mlp", "cnn4")
_BATCH = 8
_SECONDS = 30
_RAN, _REFUSED, _FAILED = 0, 3, 4
_WORDS = {_RAN: "ran", _REFUSED: "refused", _FAILED: "another error"}


def main() -> None:
    """Print how many ended how."""
    parser = argparse.ArgumentParser(description="What ExecuTorch does with damaged programs.")
    parser.add_argument("--programs", type=int, default=150, metavar="N", help="damaged programs")
    parser.add_argument("--bits", type=int, default=1, metavar="N", help="flipped bits of each")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    args = parser.parse_args()
    generator = random.Random(args.seed)
    sound = [case for case in program_cases() if case.program.model in _MODELS and case.batch == _BATCH]
    engine = open_engine("executorch", ThreadSettings(1))
    ends = Counter(
        _end_of(engine, _damaged(generator.choice(sound), args.bits, generator)) for _ in range(args.programs)
    )
    print(f"{args.programs} programs with {args.bits} flipped bits, {engine.name}")
    for end, count in ends.most_common():
        print(f"{count:6} {end}")


def _damaged(case: Case, bits: int, generator: random.Random) -> Case:
    data = bytearray(case.program.data)
    for _ in range(bits):
        data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
    program = CaseProgram(case.program.model, bytes(data), case.program.sample, case.program.program)
    return Case(program, case.mask, case.batch)


def _end_of(engine: Engine, case: Case) -> str:
    """Run a case in a copy of this process, and return how that ended."""
    child = os.fork()
    if child == 0:
        os._exit(_run(engine, case))
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return _WORDS[os.WEXITSTATUS(status)]


def _run(engine: Engine, case: Case) -> int:
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silent, stream)
    signal.alarm(_SECONDS)
    try:
        Trial(case, load_step(engine, case)).run(2)
    except EdgeFLError:
        return _REFUSED
    except Exception:
        return _FAILED
    return _RAN


if __name__ == "__main__":
    main()
