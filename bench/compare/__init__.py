"""Compares two measurements figure by figure (docs/measurements.md)."""
