"""Rows without groups: integer codes in memory or on disk, and random samples of them."""
