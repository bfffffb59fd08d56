# SPDX-License-Identifier: Apache-2.0
"""Conan 2: `conan create packaging/conan` (from the root of the repository) makes the package and tests it."""
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

required_conan_version = ">=2.0"


class SluiceConan(ConanFile):
    name = "sluice"
    description = "Decoding algorithms for sequence models: greedy, beam, constrained, blockwise, sampled"
    license = "Apache-2.0"
    topics = ("beam-search", "decoding", "machine-translation", "language-models", "header-only")
    package_type = "header-library"
    # The compiler is asked for its standard alone: package_id() leaves none of them.
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    @property
    def _root(self):
        return os.path.join(self.recipe_folder, os.pardir, os.pardir)

    def set_version(self):
        # The version is written once, in the header.
        text = load(self, os.path.join(self._root, "include", "sluice", "version.hpp"))
        parts = (re.search(rf"_VERSION_{part} (\d+)$", text, re.MULTILINE) for part in ("MAJOR", "MINOR", "PATCH"))
        self.version = ".".join(part.group(1) for part in parts)

    def export_sources(self):
        # All that CMake reads without tests, examples and benchmarks.
        folders = [f"{folder}/*" for folder in ("cmake", "include", "kernels", "src")]
        for pattern in ("CMakeLists.txt", "LICENSE", "README.md", *folders):
            copy(self, pattern, self._root, self.export_sources_folder)

    def layout(self):
        cmake_layout(self, src_folder=".")

    def validate(self):
        if self.settings.get_safe("compiler.cppstd"):
            check_min_cppstd(self, 20)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for what in ("BUILD_TESTS", "BUILD_EXAMPLES", "BUILD_BENCHMARKS", "LLAMA", "CTRANSLATE2", "ONNXRUNTIME"):
            toolchain.cache_variables[f"SLUICE_{what}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()  # writes what find_package(sluice) reads
        cmake.build()  # nothing, as long as all are headers

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        rmdir(self, os.path.join(self.package_folder, "share", "doc"))  # the licence, once more

    def package_id(self):
        self.info.clear()

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        # CMakeDeps writes none: the package's own file is found instead, which knows the components cuda, llama and so on.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("share", "cmake", "sluice")]
        self.cpp_info.set_property("pkg_config_name", "sluice")
        if self.settings.get_safe("os") in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread"]
