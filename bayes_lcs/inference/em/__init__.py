"""EM for mixtures of products of multinomials."""
