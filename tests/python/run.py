#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py LIBRARY: the tests of the Python package over a library that is built already, with any Python of this machine that has
NumPy. run.py LIBRARY wheel: the wheel with that library in it, installed where no other sluice is. run.py FILE.whl: this wheel.
run.py LIBRARY transformers: generate() beside that of transformers, where that and torch are."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAM = """
import doctest, pathlib, sluice, numpy as np
assert pathlib.Path(sluice.__file__).parent == pathlib.Path({folder!r}) / "sluice", sluice.__file__
assert "{folder}" in pathlib.Path("/proc/self/maps").read_text()  # its own library
assert doctest.testmod(sluice).failed == 0 and doctest.testmod(sluice).attempted > 4
with sluice.Server(sluice.FunctionModel(lambda tokens: np.eye(3)[(tokens[-1] + 1) % 3], sluice.Vocabulary(3, eos=0))) as server:
    assert server.submit(None).result().tokens == [1, 2, 0]
"""


def python_with(*modules):
    """The first Python, from 3.10 on, that has these modules; else says so and ends."""
    test = "import sys, " + ", ".join(modules) + "; assert sys.version_info >= (3, 10)"
    for python in (sys.executable, "/usr/bin/python3"):
        if pathlib.Path(python).exists() and subprocess.run([python, "-I", "-c", test], capture_output=True).returncode == 0:
            return python
    print(f"SKIPPED: needs Python 3.10 or newer with {', '.join(modules)}")
    sys.exit(0)


def unit_tests(library):
    python, passed = python_with("numpy"), 0
    environment = dict(os.environ, SLUICE_LIBRARY=library, PYTHONPATH=str(ROOT / "python"), PYTHONDONTWRITEBYTECODE="1")
    for name in "test_decoding.py", "test_outputs.py", "test_language.py", "test_package.py", "test_huggingface.py":
        run = subprocess.run([python, HERE / name], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        print(run.stdout, run.stderr, sep="")
        assert run.returncode == 0 and run.stderr.endswith("\nOK\n"), name
        assert "Exception ignored" not in run.stderr, name
        passed += int(re.search(r"^Ran (\d+) tests", run.stderr, re.M)[1])
    run = subprocess.run([python, ROOT / "benchmarks/python_beam.py", *"--vocabulary 60 --sentences 20 --batch 8 --times 1".split()],
                         env=environment, capture_output=True, text=True)
    print(run.stdout, run.stderr, sep="")
    assert run.returncode == 0 and "20 of 20 outputs are the same" in run.stdout
    return passed + 1


def beside_transformers(library):
    python = python_with("numpy", "torch", "transformers")
    environment = dict(os.environ, SLUICE_LIBRARY=library, PYTHONPATH=str(ROOT / "python"), PYTHONDONTWRITEBYTECODE="1")
    subprocess.run([python, HERE / "test_huggingface.py", "BesideTransformers"], env=environment, stdin=subprocess.DEVNULL, check=True)
    return 2


def wheel(given):
    """`given`: a wheel, or the library that is to be in one."""
    python = python_with("numpy", *([] if given.endswith(".whl") else ["build", "setuptools", "wheel"]), "pip")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SLUICE"))}
    with tempfile.TemporaryDirectory() as folder:
        out, installed = pathlib.Path(folder, "out"), str(pathlib.Path(folder, "installed").resolve())
        path = os.pathsep.join([str(pathlib.Path(python).parent), environment["PATH"]])
        if given.endswith(".whl"):
            made = pathlib.Path(given).resolve()
        else:
            subprocess.run([ROOT / "scripts/wheel", out], env=environment | {"SLUICE_LIBRARY": given, "PATH": path}, check=True)
            made, = out.iterdir()
        assert re.fullmatch(r"sluice-[\d.]+-py3-none-linux_\w+\.whl", made.name), made.name
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", installed, made],
                       env=environment | {"PIP_ROOT_USER_ACTION": "ignore"}, check=True)
        names = {str(file.relative_to(installed)) for file in pathlib.Path(installed).rglob("*")}
        assert {"sluice/py.typed", "sluice/options.py"} <= names, names
        assert any(name.endswith("dist-info/LICENSE") for name in names), names
        subprocess.run([python, "-c", PROGRAM.format(folder=installed)], env=environment | {"PYTHONPATH": installed}, check=True,
                       cwd=folder)
    return 6


if __name__ == "__main__":
    count = beside_transformers(sys.argv[1]) if sys.argv[2:] == ["transformers"] else wheel(sys.argv[1]) if sys.argv[2:] == ["wheel"] or sys.argv[1].endswith(".whl") else unit_tests(sys.argv[1])
    print(f"{count} passed, 0 failed")
