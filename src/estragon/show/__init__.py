"""What people look at: charts of a training run, and a film of its stages."""
