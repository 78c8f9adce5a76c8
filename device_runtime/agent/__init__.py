"""The agent: keeps a device in a federation through crashes, network failures and full disks.

agent.py             the loop: deliver a result, work on a task, ask for one
task_runner.py       one task, from its plan to a result; failures and damaged downloads become refusals
task_artifacts.py    what a plan names by digest, and how it becomes a task
task_worker.py       where a task is trained: the interface, and in this process
worker_process.py    trains in another process, which can be ended whatever it computes
worker_service.py    that process's side of the pipe
process_limits.py    limits that a process sets for itself: memory, file size, life
sample_check.py      what a sample of the federation is, before the device joins
own_capabilities.py  what this software can run
agent_home.py        the agent's files on disk, for their user alone
device_homes.py      the homes of a device that is in several federations
shared_device.py     what they share: today's usage, and the turn to train
owner_policy.py      the owner's limits: power, heat, network, hours, energy, traffic, memory, time
patience.py          how long a task is kept that cannot be worked on now
conditions.py        the present state of a Linux device, for these limits
device_limits.py     what today has used of them, and what they leave
traffic.py           bytes received and sent, and the most that may be
client.py            the protocol: one method per request, one error per kind of failure
transport.py         the transport interface, and HTTP
pin_refresh.py       keeps the pins of the coordinator's keys current
metered_network.py   connections that count every byte and end at a limit
compression.py       compression of request and reply bodies
artifact_cache.py    downloaded artifacts by digest, with resumable downloads
device_clock.py      clocks for deadlines
backoff.py           growing, randomised waits between retries
"""
