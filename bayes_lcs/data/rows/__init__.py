"""Encode rows without groups, in memory or on disk, and draw random samples of them."""
