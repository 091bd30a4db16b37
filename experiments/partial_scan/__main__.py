"""Run the experiments: ``python -m experiments.partial_scan``."""

from __future__ import annotations

import sys

from experiments import partial_scan
from experiments.papers.command import run_command
from experiments.papers.runner import Paper
from experiments.partial_scan.setting import Setting

PAPER = Paper(partial_scan, "paper")


def main(arguments: list[str] | None = None) -> int:
    return run_command(PAPER, "Less than one scan, table by table.", Setting, arguments)


if __name__ == "__main__":
    sys.exit(main())
