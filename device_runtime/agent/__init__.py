"""The agent of a device: what keeps it in a federation, whatever happens to it.

agent.py       the loop: deliver, work, ask
home.py        what it keeps on disk
client.py      the protocol; transport.py: how requests travel; in_process.py, faults.py: other ways for them to travel
packing.py     how bodies are packed on their way
downloads.py   from a plan to a task; cache.py: artifacts by digest
policy.py      when the device may work
clock.py, backoff.py
"""
