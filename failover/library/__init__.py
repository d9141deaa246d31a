"""The functions that `import failover` gives: typed, silent, for programs of other people."""
