"""Run the experiments: ``python -m experiments.clustered_naive_bayes``."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import matplotlib as mpl
from rich.console import Console
from rich.text import Text

from bayes_lcs.core.errors import DataError
from experiments import clustered_naive_bayes
from experiments.clustered_naive_bayes.setting import (
    BUILT_IN,
    DATASETS,
    NUM_GROUPS,
    setting_for,
)
from experiments.papers.runner import NotApplicable, Paper, summary

DEFAULT_FOLDER = Path("experiment-output") / "clustered_naive_bayes"


PAPER = Paper(clustered_naive_bayes, "thesis")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m experiments.clustered_naive_bayes",
        description="The tables and figures of Roy's thesis on other data, and what it claims.",
    )
    made.add_argument("name", nargs="?", metavar="NAME", help="an experiment, or all")
    made.add_argument("--list", action="store_true", help="say which experiments there are")
    made.add_argument("--smoke", action="store_true", help="tiny sizes: does it still run?")
    made.add_argument("--data", default=BUILT_IN, choices=(BUILT_IN, *DATASETS), help="data set")
    made.add_argument("--groups", type=int, help=f"take this many groups; {NUM_GROUPS} by default")
    made.add_argument("--out", type=Path, help=f"folder for results; {DEFAULT_FOLDER}/DATASET")
    made.add_argument("--seed", type=int, default=0, help="of data, choice of groups and shuffles")
    return made


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    console = Console(width=max(shutil.get_terminal_size((140, 40)).columns, 100))
    known = PAPER.experiments
    if options.list or options.name is None:
        for name, module in known.items():
            console.print(Text(f"{name:<12} {summary(module)}"), soft_wrap=True)
        return 0
    if options.name != "all" and options.name not in known:
        parser().error(f"no experiment {options.name}; there are {', '.join(known)} and all")
    mpl.use("Agg")
    try:
        setting = setting_for(
            options.data, smoke=options.smoke, seed=options.seed, num_groups=options.groups
        )
    except DataError as error:
        print(f"{options.data}: {error}", file=sys.stderr)
        return 2
    out = options.out or DEFAULT_FOLDER / options.data
    for name in known if options.name == "all" else [options.name]:
        try:
            PAPER.run(name, setting, out, console)
        except NotApplicable as reason:
            print(f"{name} cannot be made from {options.data}: {reason}\n", file=sys.stderr)
            if options.name != "all":
                return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
