"""Run the experiments: ``python -m experiments.learning_curve``."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import matplotlib as mpl
from rich.console import Console
from rich.text import Text

from bayes_lcs.core.errors import DataError
from experiments import learning_curve
from experiments.learning_curve.setting import CLOCKS, LOADERS, SHAPES, setting_for
from experiments.papers.runner import NotApplicable, Paper, summary

DEFAULT_FOLDER = Path("experiment-output") / "learning_curve"


PAPER = Paper(learning_curve, "paper")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m experiments.learning_curve",
        description="The tables and figures of Meek, Thiesson and Heckerman, and what they claim.",
    )
    made.add_argument("names", nargs="*", metavar="NAME", help="experiments, or all")
    made.add_argument("--list", action="store_true", help="say which experiments there are")
    made.add_argument("--smoke", action="store_true", help="tiny sizes: does it still run?")
    made.add_argument(
        "--data",
        default="paper",
        choices=("paper", "real", "held_back", "confirmed", *SHAPES, *LOADERS),
        help="generated in the shape of the paper's sets, the real sets, or one of them",
    )
    made.add_argument("--scale", type=float, default=1.0, help="share of the rows; 1 by default")
    made.add_argument("--sequences", type=int, default=10, help="orders of the rows; 10")
    made.add_argument("--clock", default="cpu", choices=tuple(CLOCKS), help="what seconds are")
    made.add_argument("--out", type=Path, help=f"folder for results; {DEFAULT_FOLDER}/DATASET")
    made.add_argument("--keep", type=Path, help="folder of training runs, to be made once only")
    made.add_argument("--seed", type=int, default=0, help="of data, orders and EM's start")
    return made


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    console = Console(width=max(shutil.get_terminal_size((140, 40)).columns, 100))
    known = PAPER.experiments
    if options.list or not options.names:
        for name, module in known.items():
            console.print(Text(f"{name:<12} {summary(module)}"), soft_wrap=True)
        return 0
    wanted = list(known) if options.names == ["all"] else options.names
    for name in wanted:
        if name not in known:
            parser().error(f"no experiment {name}; there are {', '.join(known)} and all")
    if not 0 < options.scale <= 1:
        parser().error(f"--scale must lie in (0, 1], got {options.scale}")
    mpl.use("Agg")
    setting = setting_for(
        options.data,
        smoke=options.smoke,
        scale=options.scale,
        sequences=options.sequences,
        clock=options.clock,
        seed=options.seed,
        keep=options.keep,
    )
    out = options.out or DEFAULT_FOLDER / options.data
    for name in wanted:
        try:
            PAPER.run(name, setting, out, console)
        except NotApplicable as reason:
            print(f"{name} cannot be made from {options.data}: {reason}\n", file=sys.stderr)
            if options.names != ["all"]:
                return 2
        except DataError as error:
            print(f"{options.data}: {error}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
