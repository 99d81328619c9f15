"""Everything an agent sees as one row of numbers, images too."""

import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_flattened_obs_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor


class FlatExtractor(BaseFeaturesExtractor):
    """What `policy_type mlp` sees of images: their pixels, side by side."""

    def __init__(self, observation_space: spaces.Dict) -> None:
        """As wide as all observations together."""
        width = sum(get_flattened_obs_dim(space) for space in observation_space.spaces.values())
        super().__init__(observation_space, features_dim=width)

    def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:
        """(batch, features_dim)."""
        return torch.cat([seen.flatten(1) for seen in observations.values()], dim=1)
