"""Options of readers: text format, missing cells, and column selection."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

from bayes_lcs.core.errors import DataNote, DataWarning, plural, warn_user
from bayes_lcs.io.column_types import convert_texts, infer_text_type, is_null, value_name

__all__ = [
    "DEFAULT_CSV",
    "INDEX_NAME",
    "MARKERS",
    "MAX_MARKER",
    "CsvOptions",
    "MissingRule",
    "MissingValues",
    "Notes",
    "add_empty_cell",
    "as_list",
    "check_option",
    "drop_stored_index",
    "is_index_name",
    "missing_rules",
    "require_column",
    "select_columns",
]

MARKERS = ("", "na", "n/a", "nan", "null", "?")
"""Default markers of missing cells, in upper or lower case."""

MAX_MARKER = 6
"""Maximum length of cells that are compared with the markers, including spaces."""

INDEX_NAME = "Unnamed: 0"
"""Name that pandas gives to a first column without a name."""

MissingValues = Iterable[Any] | Mapping[Any, Iterable[Any]] | None


@dataclass(frozen=True)
class CsvOptions:
    """Encoding, delimiter and header of a text file.

    Parameters
    ----------
    encoding
        Encoding of the text.
    delimiter
        Separator of the cells; None detects it in the header: comma, semicolon, tab or bar.
    header
        Whether the file has a header. False names the columns ``column_1``, ``column_2``, …; a list
        provides the names for a file without a header.
    """

    encoding: str = "utf-8"
    delimiter: str | None = None
    header: bool | Sequence[str] = True


DEFAULT_CSV = CsvOptions()


@dataclass(frozen=True)
class MissingRule:
    """Rule for missing cells of one column; nulls and NaN are always missing.

    ``tokens`` is None for the default: empty cells and the markers NA, N/A, NaN, NULL and ?.

    Examples
    --------
    >>> rule = MissingRule()
    >>> rule.matches("n/a"), rule.matches(" "), rule.matches("none")
    (True, True, False)
    >>> MissingRule(frozenset({"-9"})).matches("NA")
    False
    """

    tokens: frozenset[str] | None = None

    def matches(self, text: str) -> bool:
        """Return whether a text is a marker of missing cells."""
        if self.tokens is None:
            return len(text) <= MAX_MARKER and text.strip().lower() in MARKERS
        return text in self.tokens

    @cached_property
    def numbers(self) -> list[float]:
        """Numbers among the tokens, which match by value."""
        tokens = [t for t in self.tokens or () if infer_text_type([t]) in ("integer", "float")]
        found: list[float] = convert_texts(tokens, "float").tolist()
        return found

    @property
    def spellings(self) -> list[str]:
        """All matching texts, without spaces, for readers that need a list."""
        if self.tokens is not None:
            return sorted(self.tokens)
        pairs = [zip(marker.lower(), marker.upper(), strict=True) for marker in MARKERS]
        return sorted({"".join(letters) for marker in pairs for letters in product(*marker)})


GROUP_RULE = MissingRule(frozenset({""}))
"""Rule of the group column: only empty cells are missing, because an identifier may be "NA"."""


def missing_rules(
    markers: MissingValues,
    columns: Sequence[str],
    names: Collection[str],
    error: Any,
    *,
    group: str | None = None,
) -> dict[str, MissingRule]:
    """Return the rule of each column.

    ``markers`` is None for the default, texts for all ``columns``, or a mapping from column to
    texts, in which case other columns keep the default; ``names`` are all columns of the source.
    Only empty cells of the ``group`` column are missing by default.
    """
    default = dict.fromkeys(columns, MissingRule())
    if group is not None:
        default[group] = GROUP_RULE
    if markers is None:
        return default
    if isinstance(markers, Mapping):
        own = {str(name): _rule(tokens) for name, tokens in markers.items()}
        for name in own:
            require_column(name, names, error)
        return {name: own.get(name, default[name]) for name in columns}
    return dict.fromkeys(columns, _rule(markers))


def _rule(tokens: Iterable[Any]) -> MissingRule:
    return MissingRule(frozenset(value_name(t) for t in as_list(tokens) if not is_null(t)))


def add_empty_cell(given: Any) -> list[Any] | None:
    """Return an estimator's markers of missing values with the empty cell, for reading files.

    Examples
    --------
    >>> add_empty_cell(-9), add_empty_cell(None)
    ([-9, ''], None)
    """
    return None if given is None else [*as_list(given), ""]


def is_index_name(name: Any) -> bool:
    """Return whether a first column with this name is an index, which pandas and R write unnamed.

    Examples
    --------
    >>> [is_index_name(name) for name in ("", None, "Unnamed: 0", "id", 0)]
    [True, True, True, False, False]
    """
    return is_null(name) or (isinstance(name, str) and name.strip() in ("", INDEX_NAME))


def drop_stored_index(names: Iterable[str]) -> tuple[str, ...]:
    """Return column names without the unnamed index that pandas stores in Arrow and Parquet.

    Examples
    --------
    >>> drop_stored_index(["x", "__index_level_0__"])
    ('x',)
    """
    return tuple(name for name in names if not name.startswith("__index_level_"))


@dataclass
class Notes:
    """Assumptions about data that are reported to the user, with one warning per kind."""

    file: str | None = None
    index: str | None = None  # the index column that is ignored
    missing: dict[str, Counter[str]] = field(default_factory=dict)  # cells by column and text
    dropped: int = 0  # rows without a group
    set_aside: list[str] = field(default_factory=list)  # columns without numbers
    counts_empty: bool = True  # False in predictions, which report markers only
    noted: Collection[str] = ()  # columns whose missing cells were reported before

    def count_missing(self, column: str, text: str, number: int) -> None:
        """Count missing cells by text; nulls count as empty cells."""
        text = text if text.strip() else ""
        if number and column not in self.noted and (text or self.counts_empty):
            self.missing.setdefault(column, Counter())[text] += number

    def warn(self) -> None:
        """Issue the notes as warnings and reset them."""
        where = f"{self.file}: " if self.file else ""
        if self.index is not None:
            warn_user(
                f"{where}the first column has no name and is ignored as an index; rename it if it "
                "contains data",
                DataNote,
            )
        if self.set_aside:
            some = ", ".join(map(repr, self.set_aside[:8]))
            more = f" and {len(self.set_aside) - 8} more" if len(self.set_aside) > 8 else ""
            warn_user(f"{where}columns without numbers are ignored: {some}{more}", DataNote)
        if self.missing:
            found = _list_missing(self.missing)
            warn_user(
                f"{where}cells taken as missing: {found}; missing_values= changes this", DataNote
            )
        if self.dropped:
            verb = "is" if self.dropped == 1 else "are"
            rows = f"{plural(self.dropped, 'row')} without a group {verb} left out"
            warn_user(f"{where}{rows}", DataWarning)
        self.index, self.missing, self.dropped, self.set_aside = None, {}, 0, []


def _list_missing(missing: Mapping[str, Counter[str]], most: int = 8) -> str:
    shown = []
    for name, found in list(missing.items())[:most]:
        # Empty cells come first, then markers in order of appearance.
        texts = sorted(found, key=bool)
        cells = [f"{found[text]:,} {repr(text) if text else 'empty'}" for text in texts]
        shown.append(f"column {name!r} {', '.join(cells)}")
    if len(missing) > most:
        rest = sum(found.total() for found in list(missing.values())[most:])
        others = plural(len(missing) - most, "more column")
        shown.append(f"and {plural(rest, 'cell')} in {others}")
    return "; ".join(shown)


# Columns ------------------------------------------------------------------------------------------


def select_columns(
    names: Sequence[str],
    error: Any,
    *,
    features: Iterable[Any] | None = None,
    ignore: Iterable[Any] = (),
    roles: Mapping[str, str | None] | None = None,
    index: str | None = None,
) -> list[str]:
    """Return the feature columns, after checking that all named columns exist and are used once.

    ``error(message, column=)`` creates the errors. ``roles`` maps other roles to their columns:
    ``{"group": "user", "label": "decision"}``. The column ``index`` is a feature only if
    ``features`` names it.
    """
    taken = {column: role for role, column in (roles or {}).items() if column is not None}
    if len(taken) < sum(column is not None for column in (roles or {}).values()):
        raise error("one column cannot be both group and label", column=next(iter(taken)))
    ignored = [str(name) for name in as_list(ignore)]
    given = None if features is None else [str(name) for name in as_list(features)]
    for name in (*taken, *(given or ())):
        require_column(name, names, error)
    for name in ignored:
        if not is_index_name(name):  # an index is ignored anyway
            require_column(name, names, error)
    if given is None:
        left_out = {*taken, *ignored, *([] if index is None else [index])}
        chosen = [name for name in names if name not in left_out]
    else:
        chosen = [name for name in given if name not in ignored]
        for name in chosen:
            if name in taken:
                raise error(f"the {taken[name]} column cannot be a feature too", column=name)
            if chosen.count(name) > 1:
                raise error("is listed twice in features=", column=name)
    if not chosen:
        raise error("no feature columns are left; ignore fewer columns")
    return chosen


def require_column(name: str, names: Collection[str], error: Any) -> None:
    """Raise an error that suggests similar names if a column does not exist."""
    if name in names:
        return
    some = ", ".join(map(repr, list(names)[:12])) + (", …" if len(names) > 12 else "")
    hint = _suggest(name, names) or f"there are {some}"
    more = " (is the delimiter right? pass delimiter=)" if len(names) == 1 else ""
    raise error(f"there is no such column; {hint}{more}", column=name)


def _suggest(name: str, names: Collection[str]) -> str:
    """Return a question with similar column names, or an empty text."""
    folded = [other for other in names if other.strip().lower() == name.strip().lower()]
    close = dict.fromkeys(folded + difflib.get_close_matches(name, names, n=3, cutoff=0.6))
    return f"did you mean {' or '.join(map(repr, close))}?" if close else ""


def check_option(option: str, named: Iterable[str], features: Sequence[str], error: Any) -> None:
    """Raise an error if an option names a column that is not a feature."""
    for name in named:
        if name not in features:
            hint = _suggest(name, features)
            message = f"{option}= names a column that is not a feature"
            raise error(f"{message}; {hint}" if hint else message, column=name)


def as_list(items: Iterable[Any]) -> list[Any]:
    """Return a sequence or a single item as a list."""
    return [items] if isinstance(items, str) or not hasattr(items, "__iter__") else list(items)
