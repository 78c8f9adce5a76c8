"""Polling: what a device that asks for work is told, and when it should ask again."""
