"""An NVFlare job on the handwritten digits, without and with compression.

python job.py                                                        # NVFlare's FedAvg, three simulated sites
python job.py --coding '{"name": "top_k", "ratio": 0.05}'            # the same job, compressed
python job.py --coding exact --poc                                   # with real server and client processes
"""

import argparse
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
from client import SIZES
from nvflare.app_common.np.recipes.fedavg import NumpyFedAvgRecipe
from nvflare.recipe.poc_env import PocEnv
from nvflare.recipe.sim_env import SimEnv

HERE = Path(__file__).parent


def initial(folder):
    """Write the first model and return its path."""
    rng = np.random.default_rng(0)
    pieces = []
    for size_in, size_out in pairwise(SIZES):
        pieces += [rng.normal(size=size_in * size_out) * (2 / size_in) ** 0.5, np.zeros(size_out)]
    path = folder / "initial.npy"
    np.save(path, np.concatenate(pieces).astype(np.float32))
    return str(path)


def main():
    """Run the job."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--coding", default="", help="exact, top_k, or JSON; empty: no compression")
    options.add_argument("--folder", default=None, help="folder below each site's workspace that later jobs continue")
    options.add_argument("--rounds", type=int, default=30)
    options.add_argument("--poc", action="store_true", help="real processes instead of the simulator")
    options.add_argument("--workspace", default="nvflare-workspace")
    chosen = options.parse_args()
    workspace = Path(chosen.workspace).resolve()
    workspace.mkdir(parents=True, exist_ok=True)
    recipe = NumpyFedAvgRecipe(
        name="digits",
        initial_ckpt=initial(workspace),
        min_clients=3,
        num_rounds=chosen.rounds,
        train_script=str(HERE / "client.py"),
        train_args=str(workspace / "scores.txt"),
    )
    if chosen.coding:
        from fedreuse.deploy.nvflare.filters import compress

        coding = json.loads(chosen.coding) if chosen.coding.startswith("{") else chosen.coding
        compress(recipe, coding, chosen.folder)  # the only line that the compressed job has more
    run = recipe.execute(PocEnv(num_clients=3) if chosen.poc else SimEnv(num_clients=3, workspace_root=str(workspace)))
    print("result:", run.get_result())


if __name__ == "__main__":
    main()
