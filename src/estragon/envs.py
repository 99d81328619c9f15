"""Import this and `gymnasium.make("Estragon/TagSeeker-v0")` works, `make_vec` too."""

import gymnasium

for role in ("seeker", "hider"):
    gymnasium.register(
        id=f"Estragon/Tag{role.title()}-v0",
        entry_point="estragon.tag.gym_env:TagEnv",
        vector_entry_point="estragon.tag.vector_env:TagVectorEnv",
        kwargs={"role": role},
    )
