"""File formats: CSV and Parquet."""
