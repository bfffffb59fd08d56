# SPDX-License-Identifier: Apache-2.0
"""What this processor runs. setup.py asks, too, before there is a library."""

_V3 = {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "abm"}


def runs_v3() -> bool:
    """Whether it runs what is compiled for x86-64-v3."""
    try:
        with open("/proc/cpuinfo") as file:
            flags = next(line for line in file if line.startswith("flags"))
    except (OSError, StopIteration):
        return False
    return _V3 <= set(flags.split())
