"""Where networks are computed."""

import os

import torch

from estragon.support.errors import UserError
from estragon.trainers.sb3.settings import PolicyType
from estragon.trainers.settings import Device


def choose_device(asked: Device, policy_type: PolicyType) -> str:
    """The processor, unless somebody says otherwise or there are images and CUDA."""
    if asked == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: torch sees no CUDA here; say --device cpu")
    if asked == "auto":
        return "cuda" if policy_type == "cnn" and torch.cuda.is_available() else "cpu"
    return asked


def use_few_threads(policy_type: PolicyType) -> None:
    """Small layers are done before threads agree; OMP_NUM_THREADS says otherwise."""
    if policy_type != "cnn" and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
