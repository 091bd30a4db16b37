"""Whole jobs, as the commands run them: compute, then write files."""
