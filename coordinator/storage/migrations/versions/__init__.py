"""The steps, one per file. A released step never changes: some database may have taken it.

v0001_begin.py         the first tables
v0002_correction.py    what a device's rounds really took
v0003_looking.py       deadlines that change, plans, and what each device did last
v0004_kept_models.py   which models are stored, and why a device was left out
v0005_operators.py     named tokens of operators, and the audit log
v0006_capabilities.py  what the software of a device can run
v0007_programs.py      the programs of federations, and the rung of a task
"""
