"""Compares two measurements figure by figure (docs/engineering-notes.md)."""
