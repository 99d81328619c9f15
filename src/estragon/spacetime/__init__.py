"""SpaceTime VR: configuration, rewards, comfort and preprocessing of the navigation task."""
