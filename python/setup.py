# SPDX-License-Identifier: Apache-2.0
"""Compiles the C interface of ../c, with $CXX and $CXXFLAGS, into the package: nothing of it depends on a version of Python.

With SLUICE_LIBRARY=FILE that library is packed instead.
"""
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import tempfile

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

ROOT = pathlib.Path(__file__).resolve().parents[1]
TEXT = (ROOT / "include/sluice/version.hpp").read_text()
VERSION = ".".join(re.search(rf"_VERSION_{part} (\d+)$", TEXT, re.M)[1] for part in ("MAJOR", "MINOR", "PATCH"))

SOURCES = ("sluice.cpp", "grammar.cpp", "catalogue.cpp", "ngrams.cpp", "suffix.cpp", "trace.cpp", "watermark.cpp")


def compile_libraries(folder: pathlib.Path) -> None:
    """libsluice.so.1, for any processor, and on x86-64 one more, for those of the last ten years; see _library.py."""
    folder.mkdir(parents=True, exist_ok=True)
    if ready := os.environ.get("SLUICE_LIBRARY"):
        shutil.copy(ready, folder / "libsluice.so.1")
        return
    with tempfile.TemporaryDirectory() as work:  # one file: what all include is read once
        unit = pathlib.Path(work) / "libsluice.cpp"
        unit.write_text("".join(f'#include "{ROOT / "c" / name}"\n' for name in SOURCES))
        running = [start_compiler(folder / "libsluice.so.1", unit, [])]
        if platform.machine() == "x86_64" and "-march" not in os.environ.get("CXXFLAGS", ""):
            running.append(start_compiler(folder / "libsluice-v3.so.1", unit, ["-march=x86-64-v3"]))
        failed = [compiler.wait() for compiler in running]
    if any(failed):
        raise SystemExit("sluice: the compiler failed")


def start_compiler(target: pathlib.Path, unit: pathlib.Path, flags: list) -> subprocess.Popen:
    command = [
        *shlex.split(os.environ.get("CXX", "g++")), "-std=c++20", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-pthread",
        "-fvisibility=hidden", "-fvisibility-inlines-hidden", *flags, *shlex.split(os.environ.get("CXXFLAGS", "")),
        f"-I{ROOT / 'include'}", "-x", "c++", str(unit), "-x", "none",
        "-static-libstdc++", "-static-libgcc", f"-Wl,--version-script={ROOT / 'c/sluice.map'}", "-Wl,-soname,libsluice.so.1",
        "-Wl,-s", "-o", str(target)]
    print(shlex.join(command), flush=True)
    return subprocess.Popen(command)


class Build(build_py):
    def run(self):
        super().run()
        compile_libraries(pathlib.Path(self.build_lib) / "sluice")


class Binary(Distribution):
    def has_ext_modules(self):
        return True


class Wheel(bdist_wheel):
    """For any Python 3, and this processor."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", f"linux_{platform.machine()}"


setup(version=VERSION, distclass=Binary, cmdclass={"build_py": Build, "bdist_wheel": Wheel})
