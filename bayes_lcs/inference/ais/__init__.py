"""Annealed importance sampling."""
