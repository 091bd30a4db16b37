"""Models of grouped categorical data, one file per model, without inference code."""
