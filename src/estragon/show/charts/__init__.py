"""Charts of training runs: what was counted, and where the agents were."""
