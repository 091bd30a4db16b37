"""Run long work: progress, Ctrl-C, checkpoints, atomic files and executors. No statistics."""
