#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs of packaging/conan/conanfile.py what needs no Conan: the version that it reads, and whether CMake can install what it
exports.

  conan_recipe.py FOLDER
"""
import pathlib
import runpy
import shutil
import subprocess
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RECIPE = ROOT / "packaging" / "conan" / "conanfile.py"


def copy(recipe, pattern, src, dst):
    """As Conan's: what matches, below src, to the same place below dst; * goes across folders."""
    src = pathlib.Path(src).resolve()
    found = [f for f in src.glob(pattern.replace("/*", "/**/*")) if f.is_file()]
    if not found:
        sys.exit(f"conanfile.py copies {pattern}, which is not there")
    for file in found:
        to = pathlib.Path(dst) / file.relative_to(src)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, to)


def module(name, **contents):
    made = types.ModuleType(name)
    vars(made).update(contents)
    sys.modules[name] = made


module("conan", ConanFile=object)
module("conan.tools")
module("conan.tools.build", check_min_cppstd=None)
module("conan.tools.cmake", CMake=None, CMakeToolchain=None, cmake_layout=None)
module("conan.tools.files", copy=copy, rmdir=None, load=lambda recipe, path: pathlib.Path(path).read_text(encoding="utf-8"))

folder = pathlib.Path(sys.argv[1])
shutil.rmtree(folder, ignore_errors=True)
recipe = runpy.run_path(str(RECIPE))["SluiceConan"]()
recipe.recipe_folder = str(RECIPE.parent)
recipe.export_sources_folder = str(folder / "source")
recipe.set_version()
recipe.export_sources()
assert recipe.package_type == "header-library", recipe.package_type

options = [f"-DSLUICE_{what}=OFF" for what in ("BUILD_TESTS", "BUILD_EXAMPLES", "BUILD_BENCHMARKS", "LLAMA", "CTRANSLATE2", "ONNXRUNTIME")]
quiet = {"stdout": subprocess.DEVNULL, "check": True}
subprocess.run(["cmake", "-S", folder / "source", "-B", folder / "build", *options], **quiet)
subprocess.run(["cmake", "--build", folder / "build"], **quiet)
subprocess.run(["cmake", "--install", folder / "build", "--prefix", folder / "prefix"], **quiet)
print(recipe.version)
