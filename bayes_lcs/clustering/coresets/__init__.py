"""Coresets: construction, checks, streams and merge-and-reduce trees."""
