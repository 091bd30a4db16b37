"""Validated, integer-coded tables of grouped data, their readers, and named data sets."""
