"""Rendering of HTML reports: templates, safe display of names, and the provenance table.

A page is a single HTML file without network requests. Names come from data files: templates escape
all of them, and scripts get them as JSON. Names are shown with ``| name``, which truncates long
ones and isolates their text direction.
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

__all__ = ["Provenance", "provenance_table", "render", "save_html", "truncate"]

MAX_NAME_LENGTH = 60
"""Maximum number of characters of a name on a page."""
MAX_HASHED_BYTES = 10**9
"""Maximum size in bytes of a file that is read again for its hash."""
INTERRUPTED = (
    "Interrupted: this page shows the results at the time of the interruption. "
    "The same command with --resume continues the run."
)


@dataclass(frozen=True)
class Provenance:
    """Input and options of a run, for the end of a page.

    Attributes
    ----------
    command
        Name of the command or function.
    source
        The file or folder, or a description if there is none.
    seed
        Seed of all draws; None if there are none.
    options
        Options by name; those that are None, False or empty are not shown.
    """

    command: str = ""
    source: Path | str = ""
    seed: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the file, without its folder."""
        return self.source.name if isinstance(self.source, Path) else self.source


def truncate(text: object, longest: int = MAX_NAME_LENGTH) -> str:
    """Return a text, truncated with an ellipsis if it is too long.

    Examples
    --------
    >>> truncate("a" * 100, 5)
    'aaaa…'
    """
    shown = str(text)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def _name(text: object, longest: int = MAX_NAME_LENGTH) -> Markup:
    """Return a name in an element of its own, which isolates its text direction."""
    return Markup("<bdi>{}</bdi>").format(truncate(text, longest))


def _names(texts: Sequence[object], most: int = 200) -> Markup:
    """Join names with commas, up to a maximum number."""
    shown = Markup(", ").join(_name(text) for text in texts[:most])
    more = len(texts) - most
    return shown + f" and {more:,} more" if more > 0 else shown


def render(template: str, **values: Any) -> str:
    """Render a template of this package.

    Parameters
    ----------
    template
        Name of the template.
    **values
        Variables of the template. ``interrupted`` adds a notice at the top.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("bayes_lcs.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"name": _name, "names": _names, "short": truncate}
    interrupted = INTERRUPTED if values.pop("interrupted", False) else ""
    return environment.get_template(template).render(interrupted=interrupted, **values)


def save_html(page: str, path: Path) -> Path:
    """Write a page atomically."""

    def write(part: Path) -> None:
        part.write_text(page, encoding="utf-8", errors="replace")

    return write_atomically(path, write)


def provenance_table(
    origin: Provenance, more: Sequence[tuple[str, str]] = (), libraries: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Return names and values of the table at the end of a page.

    Parameters
    ----------
    more
        Further rows of this command, between the file and the versions.
    libraries
        Names of the packages whose versions are shown.
    """
    rows = [("command", f"bayes-lcs {origin.command}" if origin.command else "from Python")]
    rows += [("data", truncate(origin.name, 200) or "a table"), *_content(origin.source), *more]
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
        return truncate(value.name)
    if isinstance(value, list | tuple):
        return ", ".join(truncate(entry) for entry in value)
    return "yes" if value is True else truncate(value)


def _content(source: Path | str) -> list[tuple[str, str]]:
    """Return rows that identify the content of the input: a hash, or size and time."""
    if not isinstance(source, Path) or not source.exists():
        return []
    files = sorted(file for file in source.rglob("*") if file.is_file())
    size = sum(file.stat().st_size for file in files) if files else source.stat().st_size
    if source.is_dir():
        return [("content", f"{len(files):,} files, {size:,} bytes")]
    if size <= MAX_HASHED_BYTES:
        with source.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return [("content of the file (sha256)", digest)]
    changed = datetime.fromtimestamp(source.stat().st_mtime, UTC)
    return [("content", f"{size:,} bytes, last changed {changed:%Y-%m-%d %H:%M:%S} UTC")]
