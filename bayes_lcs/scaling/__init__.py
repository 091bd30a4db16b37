"""How much data, and where it is processed."""
