"""Polling: the answer to a device that asks for work, and when it should ask again.

long_poll.py      lets devices wait, and wakes them as soon as they have a task
poll_response.py  the answer to a poll: a task, or when to ask again
poll_schedule.py  predicts when there will be work again
"""
