"""What every room may use: errors, exit codes, files, locks, paths, options, progress, signals."""
