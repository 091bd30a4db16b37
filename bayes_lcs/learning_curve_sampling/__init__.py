"""Learning-curve sampling: train on as many rows as pay off."""
