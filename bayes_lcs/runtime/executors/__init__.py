"""Executors: this process, worker processes, Dask and JAX devices."""
