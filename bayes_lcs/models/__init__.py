"""What we believe about grouped categorical data: one file a model, and no sampling loops."""
