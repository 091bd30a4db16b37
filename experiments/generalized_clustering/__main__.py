"""Run the experiments: ``python -m experiments.generalized_clustering``."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import matplotlib as mpl
from rich.console import Console
from rich.text import Text

from bayes_lcs.data.errors import DataError
from experiments import generalized_clustering
from experiments.generalized_clustering.setting import Setting
from experiments.papers.runner import Paper, summary

DEFAULT_FOLDER = Path("experiment-output") / "generalized_clustering"
PAPER = Paper(generalized_clustering, "paper")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m experiments.generalized_clustering",
        description="The tables and figures of Kalton, Langley, Wagstaff and Yoo.",
    )
    made.add_argument("names", nargs="*", metavar="NAME", help="experiments, or all")
    made.add_argument("--list", action="store_true", help="say which experiments there are")
    made.add_argument("--smoke", action="store_true", help="tiny sizes: does it still run?")
    made.add_argument("--out", type=Path, default=DEFAULT_FOLDER, help="folder for results")
    made.add_argument("--seed", type=int, default=0, help="of folds, starts and made data")
    return made


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    console = Console(width=max(shutil.get_terminal_size((140, 40)).columns, 100))
    known = PAPER.experiments
    if options.list or not options.names:
        for name, module in known.items():
            console.print(Text(f"{name:<16} {summary(module)}"), soft_wrap=True)
        return 0
    for name in options.names:
        if name != "all" and name not in known:
            parser().error(f"no experiment {name}; there are {', '.join(known)} and all")
    mpl.use("Agg")
    setting = Setting(smoke=options.smoke, seed=options.seed)
    for name in list(known) if "all" in options.names else options.names:
        try:
            PAPER.run(name, setting, options.out, console)
        except DataError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
