"""Searches for bytes that break a target: python -m tests.fuzz.run TARGET [--seconds 60] [--keep]

Atheris, Python's coverage-guided fuzzer, starts from the corpus. With --keep, inputs that reached new code are added to
the corpus. An input that breaks the target is always written there, and the exit code is not 0.
"""

import argparse
import sys
import tempfile

from tests.fuzz.targets import CORPUS, MOST_BYTES, TARGETS


def main() -> None:
    """Fuzz one target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--keep", action="store_true", help="add what reached new code to the corpus")
    args = parser.parse_args()
    import atheris

    folder = CORPUS / args.target
    with tempfile.TemporaryDirectory() as found:
        options = [f"-max_total_time={args.seconds}", f"-max_len={MOST_BYTES}", f"-artifact_prefix={folder}/broken-"]
        options += ["-rss_limit_mb=2048", "-timeout=10", "-print_final_stats=1"]
        folders = [str(folder)] if args.keep else [found, str(folder)]
        atheris.instrument_all()
        target = TARGETS[args.target]
        atheris.Setup([sys.argv[0], *options, *folders], lambda data: (target(data), None)[1])
        atheris.Fuzz()


if __name__ == "__main__":
    main()
