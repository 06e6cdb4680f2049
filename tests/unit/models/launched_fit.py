"""Run by a launcher on every process: one training of the group, whose weights each process writes."""

# ruff: noqa: E402

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

import os

import torch
from safetensors.torch import save_file

torch.set_num_threads(1)

from test_parallel import JOINT, RECIPE, training_set

from mqnet.rng import Key

fitted = RECIPE.fit(training_set(), JOINT, Key(2))
save_file(fitted.state(), Path(sys.argv[1]) / f"{os.environ['RANK']}.safetensors")
