"""What the experiments of all papers have in common: claims, outcomes, and how one is run."""
