"""Rounds: the state machine, its driver, planning, uploads and garbage collection.

state_machine.py       the states of a round, and every step between them
driver.py              the thread that advances every federation
context.py             what one worker works with
deadlines.py           deadlines and ages that survive a clock that is set back
planner.py             available devices, the plan for them, and who can personalise in time
program_catalogue.py   which compiled programs federations have, and which ones plans could have used
dispatch.py            planned tasks become client plans and their bodies
uploads.py             the queue that stores updates and acknowledges them
upload_sizes.py        how large an update may be, before it is read
upload_checks.py       checks of incoming updates: task, size, tensors, how far they move the model
round_models.py        the models between rounds, and the aggregation of a round's updates
stored_updates.py      the stored updates of a round, for aggregation
evaluation.py          evaluates the part of the global model that devices hold
report.py              the report of a round
corrections.py         how far devices were from their predictions
garbage_collection.py  drops what no round needs any more
"""
