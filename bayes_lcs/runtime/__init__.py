"""Progress, Ctrl-C, checkpoints, atomic files and executors; no statistics."""
