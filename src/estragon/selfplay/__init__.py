"""Learning: policies, PPO, the self-play league, and everything a training run keeps."""
