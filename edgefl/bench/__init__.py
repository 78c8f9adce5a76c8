"""Measurements of this machine: `edgefl bench`, and what the scripts in `benchmarks` time with.

race.py, serving.py   engines in processes of their own, in turns: who asks, and who is asked
racer.py, job.py      what runs in such a process: a model that predicts, or a training step
timing.py             the same for functions of this process
spread.py             percentiles, ratios and how much they mean
report.py             what a measurement found, for people and programs
subject.py, parts.py  which model; its dense, sparse and 8-bit files
infer.py, train.py    models and engines against each other
wire.py               bits a parameter of every codec and uplink
plan.py               planners: seconds, bias, bound
load/                 a coordinator under many devices

Nothing here is imported by a device or a coordinator at work. torch is only ever used through `export`, and what cannot
run without it is named, with the reason.
"""
