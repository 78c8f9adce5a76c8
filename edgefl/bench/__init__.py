"""Benchmarks of this machine: `edgefl bench`, and the timing functions of the scripts in `benchmarks`.

No device and no coordinator imports this package. torch is used only through `export`; whatever cannot run without it
is listed with the reason.

timing.py            interleaved timings, percentiles, and ratios with quartiles
report.py            the result of a benchmark
benchmark_model.py   the model to measure
unlimited_device.py  a fictional device that can train any submodel
engine_job.py        the description of an engine process's work
process_loop.py      the request loop inside an engine process
engine_worker.py     the main function of an engine process
engine_processes.py  starting engine processes and running them in turns
measurements.py      time, memory, energy and accuracy of engine processes
inference_files.py   dense, sparse and 8-bit files of a model
infer.py             `edgefl bench infer`
train.py             `edgefl bench train`
wire.py              `edgefl bench wire`
plan.py              `edgefl bench plan`
load/                `edgefl bench coordinator`
"""
