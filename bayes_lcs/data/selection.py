"""Which columns of a source are used, and which of their cells are missing."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from bayes_lcs.data.columns import RawTable, Source, is_missing, value_name

__all__ = ["as_list", "check_option", "find_columns", "missing_tokens", "require_column"]


def find_columns(
    raw: RawTable,
    group: str,
    label: str,
    features: Sequence[str] | None,
    ignore: Iterable[str] = (),
) -> list[str]:
    """The feature columns, after checking that every column named is there and used once."""
    if group == label:
        raise raw.source.error("one column cannot be both group and label", column=group)
    ignored = as_list(ignore)
    for name in (group, label, *as_list(features or ()), *ignored):
        require_column(raw, name)
    if features is None:
        chosen = [name for name in raw.names if name not in (group, label, *ignored)]
    else:
        chosen = [name for name in as_list(features) if name not in ignored]
        for name in chosen:
            if name in (group, label):
                what = "group" if name == group else "label"
                raise raw.source.error(f"the {what} column cannot be a feature too", column=name)
            if chosen.count(name) > 1:
                raise raw.source.error("named twice in features=", column=name)
    if not chosen:
        raise raw.source.error("no column is left to be a feature")
    return chosen


def require_column(raw: RawTable, name: str) -> None:
    """Raise an error that suggests similar names if a column is not there."""
    if name not in raw.names:
        close = difflib.get_close_matches(name, raw.names, n=3, cutoff=0.6)
        folded = [other for other in raw.names if other.strip().lower() == name.strip().lower()]
        hint = list(dict.fromkeys(folded + close))
        some = ", ".join(map(repr, raw.names[:12])) + (", …" if len(raw.names) > 12 else "")
        raise raw.source.error(
            "there is no such column; "
            + (f"did you mean {' or '.join(map(repr, hint))}?" if hint else f"there are {some}")
            + (" (is the delimiter right? pass delimiter=)" if len(raw.names) == 1 else ""),
            column=name,
        )


def missing_tokens(
    given: Iterable[str] | Mapping[str, Iterable[str]], columns: Sequence[str], raw: RawTable
) -> dict[str, frozenset[str]]:
    """The cells that mean "missing" in each column; None and NaN need not be listed."""
    if isinstance(given, Mapping):
        for name in given:
            require_column(raw, name)
        per_column = {name: given.get(name, ("",)) for name in columns}
    else:
        tokens = tuple(as_list(given))
        per_column = dict.fromkeys(columns, tokens)
    return {
        name: frozenset(value_name(t) for t in as_list(tokens) if not is_missing(t))
        for name, tokens in per_column.items()
    }


def check_option(
    option: str, named: Iterable[str], features: Sequence[str], source: Source
) -> None:
    """Raise an error if an option names a column that is not a feature."""
    for name in named:
        if name not in features:
            close = difflib.get_close_matches(name, features, n=3, cutoff=0.6)
            hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
            raise source.error(f"{option}= names a column that is not a feature{hint}", column=name)


def as_list(given: Iterable[str]) -> list[str]:
    """A list of names from a sequence, or from one name."""
    return [given] if isinstance(given, str) else list(given)
