"""Collapsed Gibbs and Metropolis kernels, and the driver that runs chains."""
