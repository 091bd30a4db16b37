"""Workflows of the commands, callable from Python: compute, then write files."""
