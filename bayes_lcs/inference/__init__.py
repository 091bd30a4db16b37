"""Posterior inference: exact sums over partitions, MCMC, AIS, SMC and EM."""
