"""Exact posteriors: sums over all partitions of the groups."""
