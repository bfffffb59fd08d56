#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py LIBRARY: the tests of the Python package over a library that is built already, with any Python of this machine that has
NumPy. run.py LIBRARY wheel: the wheel with that library in it, installed where no other sluice is. run.py FILE.whl: this wheel.
run.py LIBRARY transformers: generate() beside that of transformers, where that and torch are; with transformers 4.51 before it in PYTHONPATH
(pip install --target), its groups of beams.
run.py LIBRARY ctc: the names of other packages for CTC beside these, where they are.
run.py LIBRARY ray: sluice.batch over Ray, where that is.
run.py - types: mypy and pyright, where they are."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
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
WITHOUT_NUMPY = """
import sluice
model = sluice.FunctionModel(lambda tokens: [0.0, 1.0, 0.0], sluice.Vocabulary(3, eos=0))
for what in lambda: sluice.decode(model, [None]), lambda: sluice.generate(model, [[1]], output_scores=True):
    try:
        what()
    except ImportError as error:
        assert "needs NumPy" in str(error) and "pip install" in str(error), error
    else:
        raise AssertionError
assert sluice.Grammar.regex("a").kind == "regex"
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
    for name in "test_decoding.py", "test_outputs.py", "test_frames.py", "test_language.py", "test_package.py", "test_huggingface.py":
        its = ["OverTable", "Arguments"] if name == "test_huggingface.py" else []  # the others: beside_transformers
        run = subprocess.run([python, HERE / name, *its], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        print(run.stdout, run.stderr, sep="")
        assert run.returncode == 0 and run.stderr.endswith("\nOK\n"), name
        assert "Exception ignored" not in run.stderr, name
        passed += int(re.search(r"^Ran (\d+) tests", run.stderr, re.M)[1])
    run = subprocess.run([python, ROOT / "benchmarks/python_beam.py", *"--vocabulary 60 --sentences 20 --batch 8 --times 1".split()],
                         env=environment, capture_output=True, text=True)
    print(run.stdout, run.stderr, sep="")
    assert run.returncode == 0 and "20 of 20 outputs are the same" in run.stdout
    run = subprocess.run([python, ROOT / "benchmarks/python_ctc.py", *"--frames 9 --times 1".split()], env=environment, capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.endswith("the same texts\n"), run.stdout + run.stderr
    return passed + 2


def beside_transformers(library):
    python = python_with("numpy", "torch", "transformers")
    path = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT / "python")])
    environment = dict(os.environ, SLUICE_LIBRARY=library, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1")
    version = subprocess.run([python, "-c", "import transformers; print(transformers.__version__)"], env=environment, check=True, capture_output=True, text=True)
    if version.stdout.startswith("4."):
        subprocess.run([python, HERE / "test_huggingface.py", "BesideGroups"], env=environment, stdin=subprocess.DEVNULL, check=True)
        return 1
    subprocess.run([python, HERE / "test_huggingface.py", "BesideTransformers", "Pretrained"], env=environment, stdin=subprocess.DEVNULL, check=True)
    run = subprocess.run([python, ROOT / "benchmarks/python_huggingface.py", *"--layers 1 --width 64 --vocabulary 200 --tokens 6 --requests 5 --batch 2 --times 1".split()],
                         env=environment, capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.count("| 1 of 1 |") == 2 and run.stdout.count("| 8 of 8 |") == 2 and "| 5 of 5 |" in run.stdout, run
    return 11


def beside_ctc_packages(library):
    python = python_with("numpy", "pyctcdecode")
    environment = dict(os.environ, SLUICE_LIBRARY=library, PYTHONPATH=str(ROOT / "python"), PYTHONDONTWRITEBYTECODE="1")
    subprocess.run([python, HERE / "test_ctc_packages.py"], env=environment, stdin=subprocess.DEVNULL, check=True)
    run = subprocess.run([python, ROOT / "benchmarks/python_ctc_peers.py", *"--times 1 --width 20 --words 300".split()], env=environment,
                         capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.count("| yes |") >= 3 and "| no |" not in run.stdout, run
    return 7


def over_ray(library):
    python = python_with("numpy", "ray")
    environment = dict(os.environ, SLUICE_LIBRARY=library, PYTHONPATH=str(ROOT / "python"), PYTHONDONTWRITEBYTECODE="1")
    subprocess.run([python, HERE / "test_batch.py"], env=environment, stdin=subprocess.DEVNULL, check=True)
    return 5


def checkers(modules):
    """The Python that has these, of the environment of tools/fetch-type-checkers or another; None: there is none."""
    return next((one for one in (ROOT / "build/type-checkers/bin/python", sys.executable, "/usr/bin/python3") if pathlib.Path(one).exists()
                 and subprocess.run([one, "-I", "-c", f"import {modules}"], capture_output=True).returncode == 0), None)


def types(_):
    """mypy and pyright over the package, and over what a program may and may not write."""
    python = checkers("mypy, numpy, typing_extensions")
    if python is None:
        print("SKIPPED: needs mypy: tools/fetch-type-checkers build/type-checkers")
        sys.exit(0)
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, MYPYPATH=str(ROOT / "python"), PYTHONPATH="", NO_COLOR="1")
        check = [python, "-m", "mypy", "--strict", "--cache-dir", folder]
        run = subprocess.run([*check, ROOT / "python/sluice"], env=environment, capture_output=True, text=True)
        assert run.returncode == 0, run.stdout + run.stderr
        program = HERE / "typed.py"
        run = subprocess.run([*check, program], env=environment, capture_output=True, text=True)
        found = {int(line) for line in re.findall(r"typed\.py:(\d+): error:", run.stdout)}
        wanted = {i for i, line in enumerate(program.read_text().split("\n"), 1) if "# error:" in line}
        assert found == wanted and len(wanted) > 5, (found ^ wanted, run.stdout + run.stderr)
        if subprocess.run([python, "-I", "-c", "import pyright"], capture_output=True).returncode != 0:
            return 2
        # As it is installed, without the library, which no checker needs.
        its = pathlib.Path(folder, "installed")
        subprocess.run([python, "-I", "-m", "venv", "--without-pip", its], check=True)
        site, = its.glob("lib/python3*/site-packages")
        shutil.copytree(ROOT / "python/sluice", site / "sluice")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {
            "PATH": f"{its / 'bin'}{os.pathsep}{os.environ['PATH']}", "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
        run = subprocess.run([python, "-m", "pyright", "--verifytypes", "sluice", "--ignoreexternal"], env=environment, cwd=its,
                             capture_output=True, text=True)
        assert "Type completeness score: 100%" in run.stdout, run.stdout[-4000:] + run.stderr
    return 3


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
            made, = out.glob("*.whl")
            source, = out.glob("*.tar.gz")  # of which the wheel was made
            with tarfile.open(source) as archive:
                names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
            assert {"source/include/sluice/c/sluice.h", "source/src/c/sluice.cpp", "source/src/c/sluice.map", "sluice/py.typed"} <= names, names
            assert not any(name.endswith(".so.1") for name in names), names
        assert re.fullmatch(r"sluice_decoding-[\d.]+-py3-none-linux_\w+\.whl", made.name), made.name
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", installed, made],
                       env=environment | {"PIP_ROOT_USER_ACTION": "ignore"}, check=True)
        if audits := checkers("auditwheel"):  # it needs nothing but what every system has: a tag of manylinux, not only linux
            found = subprocess.run([audits, "-m", "auditwheel", "show", made], env=environment, capture_output=True, text=True)
            assert re.search(r'platform tag:\s+"manylinux_2_\d+_\w+"', found.stdout), found.stdout + found.stderr
        names = {str(file.relative_to(installed)) for file in pathlib.Path(installed).rglob("*")}
        assert {"sluice/py.typed", "sluice/options.py"} <= names, names
        assert any(name.endswith("dist-info/LICENSE") for name in names), names
        subprocess.run([python, "-c", PROGRAM.format(folder=installed)], env=environment | {"PYTHONPATH": installed}, check=True,
                       cwd=folder)
        without = f"import sys; sys.modules['numpy'] = None\n{WITHOUT_NUMPY}"
        subprocess.run([python, "-c", without], env=environment | {"PYTHONPATH": installed}, check=True, cwd=folder)
        return 7 if given.endswith(".whl") else 7 + installs(python, given, pathlib.Path(folder), environment | {"PATH": path})


def installs(python, library, folder, environment):
    """pip install -e, and from a repository of git, each in an environment of its own, with a library that is built already."""
    clone = folder / "a clone"
    shutil.copytree(ROOT / "python", clone / "python", ignore=shutil.ignore_patterns("*.so.1", "__pycache__", "build", "*.egg-info", "dist"))
    for name in "include", "src/c":
        shutil.copytree(ROOT / name, clone / name)
    git = ["git", "-C", clone, "-c", "user.name=test", "-c", "user.email=test@example.org"]
    for command in ["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "All"]:
        subprocess.run([*git, *command], env=environment, check=True)
    environment = environment | {"SLUICE_LIBRARY": library, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    url = "git+" + clone.as_uri() + "#subdirectory=python"
    for name, arguments in ("git", [url]), ("editable", ["--editable", str(clone / "python")]):
        subprocess.run([python, "-m", "venv", "--without-pip", "--system-site-packages", folder / name], env=environment, check=True)
        its = folder / name / "bin/python"
        subprocess.run([python, "-m", "pip", "--python", its, "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", *arguments],
                       env=environment, check=True)
        where = clone / "python" if name == "editable" else next((folder / name).glob("lib/python3*/site-packages"))
        subprocess.run([its, "-c", PROGRAM.format(folder=str(where))], check=True, cwd=folder,
                       env={one: value for one, value in environment.items() if one != "SLUICE_LIBRARY"})
    return 2


if __name__ == "__main__":
    what = "wheel" if sys.argv[1].endswith(".whl") else "".join(sys.argv[2:])
    count = {"": unit_tests, "wheel": wheel, "transformers": beside_transformers, "ctc": beside_ctc_packages, "ray": over_ray, "types": types}[what](sys.argv[1])
    print(f"{count} passed, 0 failed")
