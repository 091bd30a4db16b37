"""Estimators that classify, with the manners of scikit-learn."""
