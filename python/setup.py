# SPDX-License-Identifier: Apache-2.0
"""Compiles the C interface of ../c, with $CXX and $CXXFLAGS, into the package: nothing of it depends on a version of Python. A source
distribution has its sources in source/.

SLUICE_LIBRARY=FILE   that library is packed instead
SLUICE_LEVELS=all     on x86-64 two libraries, for any processor and for those of the last ten years; else the one that runs here
CMAKE_BUILD_PARALLEL_LEVEL   compilers at a time; never more than there are cores
"""
import importlib.util
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import setuptools
from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE / "source" if (HERE / "source").is_dir() else HERE.parent
if not (ROOT / "include/sluice/version.hpp").exists():
    raise SystemExit(f"sluice: no headers in {ROOT / 'include'}: build in a clone of the repository, or from a source distribution")
TEXT = (ROOT / "include/sluice/version.hpp").read_text()
VERSION = ".".join(re.search(rf"_VERSION_{part} (\d+)$", TEXT, re.M)[1] for part in ("MAJOR", "MINOR", "PATCH"))

SOURCES = ("sluice.cpp", "grammar.cpp", "catalogue.cpp", "ctc.cpp", "ngrams.cpp", "suffix.cpp", "trace.cpp", "transducer.cpp", "watermark.cpp")
NAMES = {"darwin": "libsluice.dylib", "win32": "sluice.dll"}  # as python/sluice/_library.py looks for them
MINUTES = 4  # at most, of one core for each library, by GCC 12 and -O2, on a busy machine


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compilers_at_a_time() -> int:
    given = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", "")
    return max(1, min(int(given) if given.isdecimal() else cores(), cores()))


def runs_v3() -> bool:
    """Whether this processor does: a module of the package, which cannot be imported before there is a library."""
    spec = importlib.util.spec_from_file_location("_processor", HERE / "sluice/_processor.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.runs_v3()


def say(text: str) -> None:
    print(f"sluice: {text}", file=sys.stderr, flush=True)


def compile_libraries(folder: pathlib.Path) -> None:
    """libsluice.so.1, for any processor, or libsluice-v3.so.1, for those that have AVX2, or both; see _library.py."""
    folder.mkdir(parents=True, exist_ok=True)
    name = NAMES.get(sys.platform, "libsluice.so.1")
    for old in folder.glob("libsluice*.so.1"):
        old.unlink()
    if ready := os.environ.get("SLUICE_LIBRARY"):
        shutil.copy(ready, folder / name)
        return
    wanted = [(name, [])]
    if sys.platform == "linux" and platform.machine() == "x86_64" and "-march" not in os.environ.get("CXXFLAGS", ""):
        quick = ("libsluice-v3.so.1", ["-march=x86-64-v3"])
        wanted = [*wanted, quick] if os.environ.get("SLUICE_LEVELS") == "all" else [quick] if runs_v3() else wanted
    with tempfile.TemporaryDirectory() as work:  # one file: what all include is read once
        unit = pathlib.Path(work) / "libsluice.cpp"
        unit.write_text("".join(f'#include "{(ROOT / "src/c" / name).as_posix()}"\n' for name in SOURCES))
        running, began = [], time.monotonic()
        say(f"compiles {len(wanted)} {'libraries' if len(wanted) > 1 else 'library'}, {compilers_at_a_time()} at a time: up to {MINUTES} minutes of one core each")
        for i, (target, flags) in enumerate(wanted):
            if len(running) >= compilers_at_a_time():
                finish(running.pop(0))
            say(f"{i + 1} of {len(wanted)}: {target}")
            running.append(start_compiler(folder / target, unit, flags))
        for one in running:
            finish(one)
        say(f"compiled in {(time.monotonic() - began) / 60:.1f} minutes")


def start_compiler(target: pathlib.Path, unit: pathlib.Path, flags: list) -> subprocess.Popen:
    elf = sys.platform not in NAMES
    link = ["-static-libstdc++", "-static-libgcc", f"-Wl,--version-script={ROOT / 'src/c/sluice.map'}", "-Wl,-soname,libsluice.so.1", "-Wl,-s"]
    command = [
        *shlex.split(os.environ.get("CXX", "g++" if elf else "clang++")), "-std=c++20", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-pthread",
        "-fvisibility=hidden", "-fvisibility-inlines-hidden", *flags, *shlex.split(os.environ.get("CXXFLAGS", "")),
        f"-I{ROOT / 'include'}", "-x", "c++", str(unit), "-x", "none", *(link if elf else []), "-o", str(target)]
    print(shlex.join(command), flush=True)
    try:
        return subprocess.Popen(command)
    except FileNotFoundError:
        raise SystemExit(f"sluice: no {command[0]}: needs a compiler of C++20 (GCC 12, Clang 16 or later): CXX=... says which") from None


def finish(compiler: subprocess.Popen) -> None:
    if compiler.wait():
        raise SystemExit("sluice: the compiler failed: it needs C++20 (GCC 12, Clang 16 or later); CXX=... says which it is")


class Build(build_py):
    def run(self):
        super().run()
        compile_libraries(HERE / "sluice" if self.editable_mode else pathlib.Path(self.build_lib) / "sluice")


class Source(sdist):
    """With all that is compiled."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for compiled in (pathlib.Path(base_dir) / "sluice").glob("*.so.1"):  # of an editable install
            compiled.unlink()
        for name in ("include", "src/c"):
            shutil.copytree(ROOT / name, pathlib.Path(base_dir) / "source" / name, dirs_exist_ok=True)


class Binary(Distribution):
    def has_ext_modules(self):
        return True


class Wheel(bdist_wheel):
    """For any Python 3, and this processor."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", f"linux_{platform.machine()}" if sys.platform == "linux" else super().get_tag()[2]


# An SPDX expression in the metadata, where setuptools writes them.
license = {"license_expression" if int(setuptools.__version__.split(".")[0]) >= 77 else "license": "Apache-2.0"}
setup(version=VERSION, distclass=Binary, cmdclass={"build_py": Build, "bdist_wheel": Wheel, "sdist": Source}, **license)
