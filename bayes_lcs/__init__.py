"""Bayesian models for categorical data that comes in groups or in bulk.

The public names are listed in ``__init__.pyi``. Each is imported when it is first used, so that
importing the package does not import JAX, pandas or SciPy.
"""

import lazy_loader

from bayes_lcs._version import __version__ as __version__

__getattr__, _, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted([*_names, "__version__"])


def __dir__() -> list[str]:
    return __all__
