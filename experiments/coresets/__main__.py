"""Run the experiments: ``python -m experiments.coresets``."""

from __future__ import annotations

import sys

from experiments import coresets
from experiments.coresets.setting import Setting
from experiments.papers.command import run_command
from experiments.papers.runner import Paper

PAPER = Paper(coresets, "lecture")


def main(arguments: list[str] | None = None) -> int:
    return run_command(PAPER, "Coresets: cost, height, and pictures.", Setting, arguments)


if __name__ == "__main__":
    sys.exit(main())
