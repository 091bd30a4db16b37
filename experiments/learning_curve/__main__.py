"""Run the experiments: ``python -m experiments.learning_curve``."""

from __future__ import annotations

import argparse
import pkgutil
import shutil
import sys
import time
from importlib import import_module
from pathlib import Path
from types import ModuleType

import matplotlib as mpl
from rich.console import Console
from rich.text import Text

from bayes_lcs.data.errors import DataError, DatasetNotFound
from experiments import learning_curve
from experiments.clustered_naive_bayes.claims import Claim, compare, read_claims, show_comparison
from experiments.clustered_naive_bayes.outcome import write
from experiments.learning_curve.setting import (
    CLOCKS,
    REAL,
    SHAPES,
    NotApplicable,
    Setting,
    setting_for,
)

DEFAULT_FOLDER = Path("experiment-output") / "learning_curve"


def claims() -> tuple[Claim, ...]:
    """What the paper says."""
    return read_claims(Path(__file__).with_name("expected.toml"))


def modules() -> dict[str, ModuleType]:
    """Every experiment of this package, by name."""
    names = [module.name for module in pkgutil.iter_modules(learning_curve.__path__)]
    found = {
        name: import_module(f"{learning_curve.__name__}.{name}")
        for name in names
        if name != "__main__"
    }
    return {name: module for name, module in found.items() if hasattr(module, "run")}


def summary(module: ModuleType) -> str:
    """The first line of a module's docstring."""
    return (module.__doc__ or "").splitlines()[0]


def run_one(name: str, module: ModuleType, setting: Setting, out: Path, console: Console) -> None:
    start = time.perf_counter()
    console.print(Text(f"{name}: {summary(module)}", style="bold"))
    console.print(Text(f"Data: {setting.about}"))
    outcome = module.run(setting)
    for table in outcome.tables:
        table.show(console)
    comparison = compare(name, outcome.findings, setting, claims())
    show_comparison(comparison, console, "The paper and we")
    for path in write(name, outcome, comparison, out):
        console.print(Text(f"Written: {path}"), soft_wrap=True)
    console.print(Text(f"{time.perf_counter() - start:.0f} seconds\n"))


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
        choices=("paper", "real", *SHAPES, *REAL),
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
    known = modules()
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
            run_one(name, known[name], setting, out, console)
        except NotApplicable as reason:
            print(f"{name} cannot be made from {options.data}: {reason}\n", file=sys.stderr)
            if options.names != ["all"]:
                return 2
        except (DataError, DatasetNotFound) as error:
            print(f"{options.data}: {error}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
