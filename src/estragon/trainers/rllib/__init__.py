"""Training with Ray RLlib, on one machine or a cluster."""
