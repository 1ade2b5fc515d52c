"""The co-run matrix: a latency-sensitive (LS) and a batch program share a GPU in each configuration (docs/corun.md)."""
