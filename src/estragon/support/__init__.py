"""What every room may use: errors, files, paths, options, progress, interrupts."""
