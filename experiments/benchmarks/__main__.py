"""Run the benchmarks: ``python -m experiments.benchmarks``."""

from __future__ import annotations

import argparse
import pkgutil
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from rich.console import Console

from experiments import benchmarks
from experiments.benchmarks.tables import Scale, write


def modules() -> dict[str, ModuleType]:
    """Every benchmark of this package, by name."""
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    found = {
        name: import_module(f"{benchmarks.__name__}.{name}") for name in names if name != "__main__"
    }
    return {name: module for name, module in found.items() if hasattr(module, "run")}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.benchmarks", description="Compare with peers in one run."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these benchmarks")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--smoke", action="store_true", help="tiny sizes: does it still run?")
    size.add_argument("--full", action="store_true", help="as far as the machine goes")
    parser.add_argument("--out", type=Path, help="folder for tables and figures")
    chosen = parser.parse_args(arguments)
    scale = Scale.SMOKE if chosen.smoke else Scale.FULL if chosen.full else Scale.NORMAL
    known = modules()
    if unknown := set(chosen.names) - set(known):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    console = Console()
    tables, figures = [], {}
    for name in chosen.names or known:
        own = known[name].run(scale)
        for table in own:
            table.show(console)
        tables += own
        if chosen.out and hasattr(known[name], "figure"):
            figures[name] = known[name].figure(own)
    if chosen.out:
        write(tables, chosen.out)
        for name, figure in figures.items():
            figure.savefig(chosen.out / f"{name}.png", dpi=150)
        console.print(f"Written to {chosen.out}", markup=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
