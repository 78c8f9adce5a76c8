"""The Java client: built and tested by Maven, then run against a real coordinator."""
