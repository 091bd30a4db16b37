"""What the fits are worth: evidence, decisions, partition summaries."""
