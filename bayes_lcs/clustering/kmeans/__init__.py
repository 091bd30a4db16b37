"""k-means of weighted points, in memory, out of core and online."""
