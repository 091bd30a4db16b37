"""The version of the package, read here by the build and nowhere written twice."""

__version__ = "0.1.0"
