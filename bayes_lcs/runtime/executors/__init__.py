"""Executors: this process, local worker processes, Dask clusters and JAX devices."""
