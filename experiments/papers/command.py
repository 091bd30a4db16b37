"""The command line of a folder of experiments that has no options of its own."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich.console import Console
from rich.text import Text

from bayes_lcs.core.errors import DataError
from experiments.papers.runner import Paper, summary


def run_command(
    paper: Paper,
    description: str,
    setting: Callable[..., Any],
    arguments: list[str] | None = None,
) -> int:
    """List, or run, the experiments that are named; ``setting`` is given ``smoke`` and ``seed``."""
    package = paper.package.__name__
    folder = Path("experiment-output") / package.rpartition(".")[2]
    parser = argparse.ArgumentParser(prog=f"python -m {package}", description=description)
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments, or all")
    parser.add_argument("--list", action="store_true", help="say which experiments there are")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: does it still run?")
    parser.add_argument("--out", type=Path, default=folder, help="folder for results")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    options = parser.parse_args(arguments)
    console = Console(width=max(shutil.get_terminal_size((140, 40)).columns, 100))
    known = paper.experiments
    if options.list or not options.names:
        for name, module in known.items():
            console.print(Text(f"{name:<16} {summary(module)}"), soft_wrap=True)
        return 0
    for name in options.names:
        if name != "all" and name not in known:
            parser.error(f"no experiment {name}; there are {', '.join(known)} and all")
    mpl.use("Agg")
    chosen = setting(smoke=options.smoke, seed=options.seed)
    for name in list(known) if "all" in options.names else options.names:
        try:
            paper.run(name, chosen, options.out, console)
        except DataError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 2
    return 0
