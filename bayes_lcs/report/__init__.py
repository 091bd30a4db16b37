"""What people look at: ArviZ trees, plots, the demonstration."""
