# SPDX-License-Identifier: Apache-2.0
"""What the host and the device did."""

from undertow import _core


def stats():
    """Counters since the start or reset_stats(), as a dict.

    commands: host commands; steps: steps run by them; compiles: programs compiled; program_hits: programs found by
    their graph instead; allocations: heap allocations on the compute thread inside commands.
    """
    return _core._stats()


def reset_stats():
    """Sets all counters to 0."""
    _core._reset_stats()
