"""One of several processes that form a mesh: what `test_process_mesh.py` starts, a few at once.

``python mesh_program.py PORT PROCESSES RANK SCENE`` prints a line of JSON when it is done. What it
takes from `agreeing.py` beside it is imported late: as a script it knows no package of tests.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback

import jax
import numpy as np

import bayes_lcs as bl
from bayes_lcs.clustering.kmeans import lloyd
from bayes_lcs.inference.em import distributed_e_step, row_layout, sharded_e_step


def algorithms():
    import agreeing

    return agreeing


def numbers(found):
    return {name: np.ravel(value).tolist() for name, value in found.items()}


def agree(executor, *names):
    """Every algorithm that was asked for, and what lies in this process meanwhile."""
    found = {name: numbers(algorithms().ALGORITHMS[name](executor)) for name in names}
    return {"found": found, "shares": shares(executor)}


def shares(executor):
    """Which blocks are here; how much of a plan's rows is, and how much there is."""
    placed = executor.place(float, [str(i) for i in range(7)])
    squares = executor.each(placed, pow_of, 2)
    rows = bl.MixtureClusterer(3, missing_values=-1, executor=executor, max_iter=1, random_state=0)
    kept = []
    plain_init = sharded_e_step.MeshEStep.__init__

    def noted(self, *arguments):
        plain_init(self, *arguments)
        kept.append(self.chunks[0])

    sharded_e_step.MeshEStep.__init__ = noted
    rows.fit(algorithms().rows_of_clusters()[0])
    sharded_e_step.MeshEStep.__init__ = plain_init
    here = [shard.data.shape[0] for shard in kept[0].addressable_shards]
    return {"held": placed.held, "squares": squares, "chunks": [here, kept[0].shape[0]]}


def pow_of(power, block):
    return block**power


def other_seeds(executor):
    return fitted(executor, random_state=jax.process_index())


def other_rows(executor):
    return fitted(executor, rows=1000 + jax.process_index())


def fitted(executor, rows=1000, random_state=0):
    X = algorithms().rows_of_clusters(rows)[0]
    clusterer = bl.MixtureClusterer(
        3, missing_values=-1, executor=executor, random_state=random_state, tol=0.0, max_iter=50
    )
    return numbers({"weights": clusterer.fit(X).weights_})


def other_centers(executor):
    return numbers(
        {
            "centers": bl.KMeans(5, random_state=jax.process_index(), executor=executor)
            .fit(algorithms().points()[0])
            .cluster_centers_
        }
    )


def an_error(executor):
    """In the second process alone: block 3 lies on its last device."""
    executor.run(root_of, [1.0, 4.0, 9.0, -16.0, 25.0])


def root_of(value):
    if value < 0:
        raise ValueError(f"{value:g} has no root")
    return value**0.5


def a_death(executor):
    """The second process is killed in the middle of EM."""
    taken, passes = sharded_e_step.MeshEStep.statistics, []

    def killed(self, requests):
        passes.append(len(requests))
        if len(passes) == 6 and jax.process_index() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return taken(self, requests)

    sharded_e_step.MeshEStep.statistics = killed
    return fitted(executor)


SCENES = [agree, other_seeds, other_rows, other_centers, an_error, a_death]


def main(port, processes, rank, scene, *arguments):
    jax.distributed.initialize(
        f"127.0.0.1:{port}",
        int(processes),
        int(rank),
        initialization_timeout=120,
        heartbeat_timeout_seconds=20,
        shutdown_timeout_seconds=20,
    )
    # A few rows are then many blocks.
    distributed_e_step.BLOCK_ROWS = lloyd.BLOCK_ROWS = 400
    row_layout.BLOCK_ROWS, row_layout.CHUNK_BLOCKS = 256, 2
    play = {scene.__name__: scene for scene in SCENES}[scene]
    with bl.executor("devices") as executor:
        try:
            said = play(executor, *arguments)
        except Exception as error:
            traceback.print_exc()
            said = {"error": type(error).__name__, "message": str(error)}
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
