"""The software on a device: the agent, the trainer, the engines, the profiler and telemetry.

It must start on a machine that has only numpy, onnxruntime, safetensors and an HTTP client: no torch, no web
framework, no solver. It may import `edgefl`, but never `coordinator` or `export`.

agent/               keeps the device in a federation
trainer.py           one training task: train, evaluate, report
training_loop.py     the steps of a task
feature_step.py      a forward pass in the place of a training step
refusal.py           the error that refuses a task
local_data.py        the device's samples: batches and validation data
checkpoint.py        the training state on disk
personal_model.py    the device's own model, which is never sent
engines/             run training graphs and models: onnxruntime, ExecuTorch
profiler/            measures what a training step costs this device
telemetry/           time, memory, energy and heat of a task; facts about the machine
"""
