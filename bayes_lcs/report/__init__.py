"""HTML reports, SVG charts and CSV files of results."""
