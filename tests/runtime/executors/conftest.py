"""Workers are other processes: what they run must be importable there, by a name of its own."""

from __future__ import annotations

import sys
from pathlib import Path

# `tests` may be the name of something else that is installed; this folder's modules are not.
sys.path.append(str(Path(__file__).parent))
