#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""symbols.py LIBRARY: the library has the name, and exactly the functions, that sluice.h and sluice.map say, each with a version."""
import pathlib
import re
import subprocess
import sys

library = sys.argv[1]
root = pathlib.Path(__file__).resolve().parents[2]
declared = re.findall(r"^SLUICE_API .*?\b(sluice_\w+)\(", (root / "include/sluice/c/sluice.h").read_text(), re.M)
versions, version = {}, None  # of the map: the version of each function
for line in (root / "src/c/sluice.map").read_text().splitlines():
    if begins := re.fullmatch(r"(SLUICE_\S+) \{", line):
        version = begins[1]
    elif function := re.fullmatch(r"    (sluice_\w+);", line):
        versions[function[1]] = version
assert len(declared) == len(set(declared)) and sorted(declared) == sorted(versions), set(declared) ^ set(versions)
listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
exported = dict(line.split()[-1].split("@@") for line in listed.splitlines() if " A " not in line)
assert exported == versions, (exported, versions)
dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
assert re.search(r"SONAME.*\[libsluice\.so\.1\]", dynamic), dynamic
print(f"{len(exported)} passed, 0 failed")
