"""Fitted estimators as plain arrays, to be written down with a checkpoint; without pickle.

An estimator that has ``save`` and ``load`` is asked to use them, any other goes through skops. One
that has something in it that neither knows is not kept, and fitted again.
"""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bayes_lcs.data.checkpoints import Arrays

__all__ = ["KNOWN_TYPES", "model_arrays", "model_from_arrays", "unknown_types"]

KNOWN_TYPES = ("sklearn.tree._tree.Tree",)
"""Types that skops asks about and that do no harm."""


def unknown_types(types: list[str]) -> list[str]:
    """Those that are neither of this package nor known.

    Examples
    --------
    >>> unknown_types(["bayes_lcs.core.schema.Schema", "sklearn.tree._tree.Tree", "os.system"])
    ['os.system']
    """
    return [name for name in types if not _is_known(name)]


def _is_known(name: str) -> bool:
    """Whether a type is a class that this package defines, or one known to be harmless.

    What a module of ours merely imports does not count, nor do functions.
    """
    if name in KNOWN_TYPES:
        return True
    module, _, own = name.rpartition(".")
    if not module.startswith("bayes_lcs."):
        return False
    try:
        found = getattr(import_module(module), own)
    except (ImportError, AttributeError):
        return False
    return isinstance(found, type) and found.__module__ == module


def model_arrays(model: Any) -> Arrays | None:
    """A fitted estimator as bytes, or None if it cannot be kept."""
    try:
        if hasattr(model, "save") and hasattr(model, "load"):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "model")
                model.save(path)
                return {"model": np.frombuffer(path.read_bytes(), dtype=np.uint8)}
        from skops import io

        dumped = io.dumps(model)
        known = not unknown_types(io.get_untrusted_types(data=dumped))
    except Exception:  # whatever the estimator has in it that cannot be written, or no room
        return None
    return {"model": np.frombuffer(dumped, dtype=np.uint8)} if known else None


def model_from_arrays(written: Arrays, like: Any) -> Any:
    """The estimator that `model_arrays` wrote, of the class of another."""
    content = written["model"].tobytes()
    if hasattr(like, "save") and hasattr(like, "load"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            path.write_bytes(content)
            return type(like).load(path)
    from skops import io

    types = io.get_untrusted_types(data=content)
    unknown = unknown_types(types)
    if unknown:
        raise ValueError(f"a kept model has types that are not known to be harmless: {unknown}")
    return io.loads(content, trusted=types)
