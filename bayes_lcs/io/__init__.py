"""Read rows from files, frames and arrays, with one rule for column types."""
