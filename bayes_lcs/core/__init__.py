"""Mathematics without opinions: counts, Dirichlet-multinomial integrals, partitions, log sums."""
