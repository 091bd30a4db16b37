"""Errors that tell a user what to do instead."""

from __future__ import annotations

__all__ = ["NotExactError"]


class NotExactError(ValueError):
    """An exact answer is not available for this model, data or size; the message says why."""
