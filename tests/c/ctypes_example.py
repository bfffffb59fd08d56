#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ctypes_example.py BIGRAMS LIBRARY: the example prints what docs/c.md says, with any Python of this machine that has NumPy."""
import pathlib
import subprocess
import sys

example, library = sys.argv[1:]
pythons = [sys.executable, "/usr/bin/python3"]
python = next((p for p in pythons if pathlib.Path(p).exists()
               and subprocess.run([p, "-c", "import numpy"], capture_output=True).returncode == 0), None)
if python is None:
    print("SKIPPED: needs NumPy (python3-numpy of Debian)")
    sys.exit(0)
run = subprocess.run([python, example, library], capture_output=True, text=True)
print(run.stdout, run.stderr, sep="")
assert run.returncode == 0 and run.stderr == "", run.returncode
page = (pathlib.Path(example).parents[2] / "docs" / "c.md").read_text()
assert run.stdout and run.stdout in page, "docs/c.md shows another output"
print("1 passed, 0 failed")
