"""The agent: keeps a device in a federation through crashes, network failures and full disks.

agent.py            the loop: deliver a result, work on a task, ask for one
task_runner.py      one task, from its plan to a result; failures and damaged downloads become refusals
agent_home.py       the agent's files on disk
owner_policy.py     the owner's limits: power, heat, hours, energy, traffic, memory
client.py           the protocol: one method per request, one error per kind of failure
transport.py        the transport interface, and HTTP
compression.py      compression of request and reply bodies
downloads.py        downloads everything that a plan names
artifact_cache.py   downloaded artifacts by digest, with resumable downloads
device_clock.py     clocks for deadlines
backoff.py          growing, randomised waits between retries
"""
