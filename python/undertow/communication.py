# SPDX-License-Identifier: Apache-2.0
"""Processes that train together. Undertow runs in one process: it is rank 0 of a group of 1."""

GlobalComm = type("GlobalComm", (), {"WORLD_COMM_GROUP": "undertow_world_group", "BACKEND": "none", "INITED": False})
HCCL_WORLD_COMM_GROUP = NCCL_WORLD_COMM_GROUP = MCCL_WORLD_COMM_GROUP = GlobalComm.WORLD_COMM_GROUP
_BACKENDS = (None, "hccl", "nccl", "mccl")


def init(backend_name=None):
    """Accepts MindSpore's back ends ("hccl", "nccl", "mccl").

    Raises RuntimeError where a launcher asks for more than one process, ValueError for an unknown back end.
    """
    import os

    if backend_name not in _BACKENDS:
        raise ValueError(f"communication.init: backend_name must be one of hccl, nccl, mccl, got {backend_name!r}")
    for name in ("RANK_SIZE", "OMPI_COMM_WORLD_SIZE", "MS_WORKER_NUM"):
        if int(os.environ.get(name) or 1) > 1:
            raise RuntimeError(
                f"communication.init: {name}={os.environ[name]} asks for several processes; Undertow trains in one "
                f"process for now. Run the script without the launcher"
            )
    GlobalComm.INITED = True


def release():
    """Ends what init began."""
    GlobalComm.INITED = False


def get_rank(group=GlobalComm.WORLD_COMM_GROUP):
    """0: the only process."""
    return 0


def get_group_size(group=GlobalComm.WORLD_COMM_GROUP):
    """1: the only process."""
    return 1


get_local_rank, get_local_rank_size = get_rank, get_group_size


def create_group(group, rank_ids, options=None):
    """A group may hold only rank 0. Raises ValueError for any other."""
    if list(rank_ids) != [0]:
        raise ValueError(f"communication.create_group: rank_ids must be [0] in a single process, got {rank_ids}")


def destroy_group(group):
    """Forgets a group of create_group."""
