"""Where algorithms in bulk run: here, in processes, on Dask, on JAX's devices."""
