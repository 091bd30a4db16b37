"""What all pages have in common: rendering, names that cannot hurt, and where a result comes from.

A page is one HTML file that asks nothing of the network. Names come from data files: templates
escape all of them, and scripts get them as JSON. Names are shown with ``| name``, which cuts long
ones and keeps right-to-left marks inside.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from markupsafe import Markup

from bayes_lcs._version import __version__
from bayes_lcs.runtime.atomic_files import write_atomically

__all__ = ["Origin", "provenance", "render", "save_html", "short"]

LONGEST_NAME = 60
"""Characters of a name that a page shows."""
MOST_HASHED = 10**9
"""Bytes of a file that are read once more for its hash."""
INTERRUPTED = (
    "Interrupted: this is what had been found when the run was stopped. "
    "The same command with --resume goes on from there."
)


@dataclass(frozen=True)
class Origin:
    """What was asked, for the end of a page.

    Attributes
    ----------
    command
        Name of the command, or of the function.
    source
        The file or folder, or words where there is none.
    seed
        Of all that was drawn; None where nothing was.
    options
        By name; those that are None, False or empty are not shown.
    """

    command: str = ""
    source: Path | str = ""
    seed: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The file's name, without its folder."""
        return self.source.name if isinstance(self.source, Path) else self.source


def short(text: object, longest: int = LONGEST_NAME) -> str:
    """A name, cut off where it is long.

    Examples
    --------
    >>> short("a" * 100, 5)
    'aaaa…'
    """
    shown = str(text)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def _name(text: object, longest: int = LONGEST_NAME) -> Markup:
    """A name as an element of its own, so that its direction ends where it ends."""
    return Markup("<bdi>{}</bdi>").format(short(text, longest))


def _names(texts: Sequence[object], most: int = 200) -> Markup:
    """Names with commas between, not more than some."""
    shown = Markup(", ").join(_name(text) for text in texts[:most])
    more = len(texts) - most
    return shown + f" and {more:,} more" if more > 0 else shown


def render(template: str, **values: Any) -> str:
    """A page from one of the templates of this package.

    Parameters
    ----------
    template
        Name of the template.
    **values
        What it shows. ``interrupted`` puts a notice at the top.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("bayes_lcs.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"name": _name, "names": _names, "short": short}
    interrupted = INTERRUPTED if values.pop("interrupted", False) else ""
    return environment.get_template(template).render(interrupted=interrupted, **values)


def save_html(page: str, path: Path) -> Path:
    """Write a page, atomically."""

    def write(part: Path) -> None:
        part.write_text(page, encoding="utf-8", errors="replace")

    return write_atomically(path, write)


def provenance(
    origin: Origin, found: Sequence[tuple[str, str]] = (), libraries: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Names and values of the table at the end of a page.

    Parameters
    ----------
    found
        What else this command has to say, between the file and the versions.
    libraries
        Packages that did the work, by name.
    """
    rows = [("asked", f"bayes-lcs {origin.command}" if origin.command else "from Python")]
    rows += [("data", short(origin.name, 200) or "a table"), *_content(origin.source), *found]
    if origin.seed is not None:
        rows.append(("seed", str(origin.seed)))
    options = [
        f"{name.replace('_', ' ')}: {_option(value)}"
        for name, value in origin.options.items()
        if value is not None and value is not False and value not in ("", (), [])
    ]
    if options:
        rows.append(("options", "; ".join(options)))
    used = "".join(f", {name} {version(name)}" for name in libraries)
    python = sys.version.split()[0]
    rows.append(("made with", f"bayes_lcs {__version__}, Python {python}{used}"))
    rows.append(("made on", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"))
    return rows


def _option(value: Any) -> str:
    if isinstance(value, Path):
        return short(value.name)
    if isinstance(value, list | tuple):
        return ", ".join(short(entry) for entry in value)
    return "yes" if value is True else short(value)


def _content(source: Path | str) -> list[tuple[str, str]]:
    """What identifies the bytes that were read."""
    if not isinstance(source, Path) or not source.exists():
        return []
    files = sorted(file for file in source.rglob("*") if file.is_file())
    size = sum(file.stat().st_size for file in files) if files else source.stat().st_size
    if source.is_dir():
        return [("content", f"{len(files):,} files, {size:,} bytes")]
    if size <= MOST_HASHED:
        with source.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return [("content of the file (sha256)", digest)]
    changed = datetime.fromtimestamp(source.stat().st_mtime, UTC)
    return [("content", f"{size:,} bytes, last changed {changed:%Y-%m-%d %H:%M:%S} UTC")]
