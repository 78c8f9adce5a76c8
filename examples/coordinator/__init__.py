"""A federation on handwritten digits: its file, its model, and a systemd service.

digits_cnn.py  the model of the example federations
"""
