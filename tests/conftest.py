"""Settings of the whole suite."""

from __future__ import annotations

import os

from hypothesis import settings

# Times mean little on a shared machine, so no example has a deadline. The examples are the same
# in every run unless BAYES_LCS_SWEEP is set, so that a failure can be repeated.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("sweep", deadline=None)
settings.load_profile("sweep" if os.environ.get("BAYES_LCS_SWEEP") else "repeatable")
