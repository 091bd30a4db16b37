"""Errors and warnings that tell a user what to do instead."""

from __future__ import annotations

__all__ = ["CheckpointWarning", "ExecutorError", "InterruptedWarning", "NotExactError"]


class NotExactError(ValueError):
    """An exact answer is not available for this model, data or size; the message says why."""


class ExecutorError(RuntimeError):
    """Workers were lost, or cannot be reached; the message says which and how often."""


class InterruptedWarning(UserWarning):
    """Work was stopped from outside; what was done is kept, and the result says so."""


class CheckpointWarning(UserWarning):
    """Work cannot be written down; it goes on, but cannot be resumed from here."""
