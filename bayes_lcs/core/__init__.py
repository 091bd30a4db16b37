"""Mathematics shared by all layers: counts, Dirichlet-multinomial integrals, partitions, errors."""
