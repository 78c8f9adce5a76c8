"""The ways to divide samples among clients, one a file: labels in, the client of every sample out."""
