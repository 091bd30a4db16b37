"""Averaging ensembles that stop reading a file early."""
