"""Run the experiments of a paper: find them, show what they found beside what was published."""

from __future__ import annotations

import pkgutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.text import Text

from experiments.papers.claims import Claim, compare, read_claims, show_comparison
from experiments.papers.outcome import write


class NotApplicable(Exception):
    """An experiment that has no meaning on a data set; the message says why."""


def summary(module: ModuleType) -> str:
    """The first line of a module's docstring."""
    return (module.__doc__ or "").splitlines()[0]


@dataclass(frozen=True)
class Paper:
    """A folder of experiments: every module with a function ``run``, and ``expected.toml``.

    Attributes
    ----------
    package
        The folder.
    kind
        What it is called, as "thesis".
    """

    package: ModuleType
    kind: str

    @cached_property
    def claims(self) -> Sequence[Claim]:
        """What it says, in the order of ``expected.toml``."""
        return read_claims(Path(self.package.__path__[0]) / "expected.toml")

    @cached_property
    def experiments(self) -> dict[str, ModuleType]:
        """Every experiment of the folder, by name."""
        names = [module.name for module in pkgutil.iter_modules(self.package.__path__)]
        found = {
            name: import_module(f"{self.package.__name__}.{name}")
            for name in names
            if name != "__main__"
        }
        return {name: module for name, module in found.items() if hasattr(module, "run")}

    def run(self, name: str, setting: Any, out: Path, console: Console) -> None:
        """Run one experiment, show it and write it down."""
        start = time.perf_counter()
        module = self.experiments[name]
        console.print(Text(f"{name}: {summary(module)}", style="bold"))
        console.print(Text(f"Data: {setting.about}"))
        outcome = module.run(setting)
        for table in outcome.tables:
            table.show(console)
        comparison = compare(name, outcome.findings, setting, self.claims)
        if len(comparison):
            show_comparison(comparison, console, f"The {self.kind} and we")
        for path in write(name, outcome, comparison, out):
            console.print(Text(f"Written: {path}"), soft_wrap=True)
        console.print(Text(f"{time.perf_counter() - start:.0f} seconds\n"))
