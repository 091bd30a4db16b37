"""Supervised learners that clusterings are made of."""
