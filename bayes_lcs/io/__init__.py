"""Read rows from files, frames and arrays, with the same rules for column types."""
