"""Estimators that cluster rows."""
