"""What CI runs and bug reports need: benchmarks and debug bundles."""
