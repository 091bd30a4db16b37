"""Run the experiments: ``python -m experiments.generalized_clustering``."""

from __future__ import annotations

import sys

from experiments import generalized_clustering
from experiments.generalized_clustering.setting import Setting
from experiments.papers.command import run_command
from experiments.papers.runner import Paper

PAPER = Paper(generalized_clustering, "paper")


def main(arguments: list[str] | None = None) -> int:
    description = "The tables and figures of Kalton, Langley, Wagstaff and Yoo."
    return run_command(PAPER, description, Setting, arguments)


if __name__ == "__main__":
    sys.exit(main())
