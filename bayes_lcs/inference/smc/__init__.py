"""Sequential Monte Carlo over partitions and missing labels."""
