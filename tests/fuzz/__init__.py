"""Fuzzing of everything that parses bytes of strangers.

targets.py       one function for each parser: any bytes in, nothing but the parser's own errors out
run.py           searches for bytes that break a target, guided by coverage: python -m tests.fuzz.run TARGET
seeds.py         writes the first inputs of every target to corpus/
corpus/          inputs by target, which `make test` replays; an input that broke a target is added here
test_targets.py  replays the corpus, and in `make thorough` searches for a minute
"""
