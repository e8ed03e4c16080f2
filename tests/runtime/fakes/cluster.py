"""A cluster of Ray on this machine, with a head without CPUs, for as long as its standard input is open.

``add`` on standard input adds a node of one CPU; the number of its raylet's process is written out.
"""

from __future__ import annotations

import sys

from ray.cluster_utils import Cluster

cluster = Cluster(
    initialize_head=True,
    head_node_args={"num_cpus": 0, "temp_dir": sys.argv[1], "include_dashboard": False},
)
print(cluster.address, cluster.head_node.all_processes["raylet"][0].process.pid, flush=True)
for _ in sys.stdin:
    node = cluster.add_node(num_cpus=1)
    print(node.all_processes["raylet"][0].process.pid, flush=True)
