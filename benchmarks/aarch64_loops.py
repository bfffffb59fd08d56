#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""aarch64_loops.py [--mca llvm-mca-19] [COMPILER...]: what LLVM's models of processors say of the inner loops of packed products.

Compiles blocks of products (rows x vectors of four outputs) for AArch64, finds the loop over the inputs in the assembly, and has
llvm-mca estimate its cycles. Prints, as Markdown, for each precision and block: multiply-adds of a pass, instructions, how many of them
read or write the stack, and for each processor the cycles of a pass and the multiply-adds a cycle, as a share of the most that the
model has. An estimate: caches, memory and the loops around are not in it.

COMPILER: aarch64-linux-gnu-g++ by default; "clang++-19 --target=aarch64-linux-gnu" is another.
"""
import argparse
import pathlib
import re
import shlex
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = """
#include <sluice/output/packed_matrix.hpp>
using namespace sluice::detail::packed;
template <int Rows, int Vectors, class Panels, class X>
[[gnu::noinline]] void block(Panels const& panels, X const& x, ProductWriter const& write) {
  panels.template block<Rows, Vectors>(x, 0, 0, write);
}
"""
PRECISIONS = {
    "float32": ("FloatPanels", "sluice::MatrixView<float const>", ("fmla",)),
    "bfloat16": ("Bfloat16Panels", "Bfloat16Rows", ("bfdot",)),
    "int8": ("Int8Panels", "Int8Rows", ("smmla", "sdot")),
}
BLOCKS = ((1, 8), (2, 8), (5, 4), (10, 2))
PROCESSORS = ("neoverse-v2", "neoverse-n1", "apple-m1")


def assembly(compiler, precision, rows, vectors):
    panels, x, _ = PRECISIONS[precision]
    with tempfile.TemporaryDirectory() as work:
        source, target = pathlib.Path(work, "block.cpp"), pathlib.Path(work, "block.s")
        source.write_text(f"{SOURCE}template void block<{rows}, {vectors}>({panels} const&, {x} const&, ProductWriter const&);\n")
        subprocess.run([*shlex.split(compiler), "-std=c++20", "-O2", "-march=armv8.6-a+i8mm+bf16", f"-I{ROOT}/include", "-S",
                        source, "-o", target], check=True)
        return target.read_text().splitlines()


def inner_loop(lines, instructions):
    """The instructions from a label to the branch back to it, where most of those asked for are."""
    labels, best = {}, []
    for at, line in enumerate(lines):
        if label := re.match(r"([.\w]+):", line):
            labels[label[1]] = at
        if (branch := re.match(r"\s+(?:b[.\w]*|cbn?z\s+\w+,)\s+(\.L\w+)", line)) and branch[1] in labels:
            body = [l.split("//")[0].strip() for l in lines[labels[branch[1]] + 1:at + 1] if re.match(r"\s+[a-z]", l)]
            if count(body, instructions) > count(best, instructions):
                best = body
    return best


def count(body, instructions):
    return sum(line.split()[0] in instructions for line in body)


def cycles(mca, processor, body):
    """Of a pass, of 1,000."""
    text = "\n".join(re.sub(r"\.L\w+", "#-64", line) for line in body)
    said = subprocess.run([mca, "-mtriple=aarch64", f"-mcpu={processor}", "-mattr=+bf16,+i8mm", "-iterations=1000",
                           "--resource-pressure=false", "--instruction-info=false"],
                          input=text, text=True, check=True, capture_output=True).stdout
    return int(re.search(r"Total Cycles:\s+(\d+)", said)[1]) / 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mca", default="llvm-mca-19")
    parser.add_argument("compilers", nargs="*", metavar="COMPILER")
    options = parser.parse_args()
    # Multiply-adds of a cycle in that model: a loop of 24 that do not depend on each other.
    most = {(processor, instruction): 24 / cycles(options.mca, processor, [
        f"{instruction} v{i}.4s, v30.{kind}, v31.{lane}" for i in range(24)])
        for processor in PROCESSORS for instruction, kind, lane in (
            ("fmla", "4s", "s[0]"), ("sdot", "16b", "4b[0]"), ("smmla", "16b", "16b"), ("bfdot", "8h", "2h[0]"))}
    print("| compiler | product | rows x outputs | instructions: multiply-adds, all, of the stack |",
          *(f"{processor}: cycles, of {most[processor, 'fmla']:.0f} a cycle |" for processor in PROCESSORS))
    print("| --- " * (4 + len(PROCESSORS)) + "|")
    for compiler in options.compilers or ["aarch64-linux-gnu-g++"]:
        for precision, (_, _, instructions) in PRECISIONS.items():
            for rows, vectors in BLOCKS:
                body = inner_loop(assembly(compiler, precision, rows, vectors), instructions)
                adds = {one: count(body, (one,)) for one in instructions if count(body, (one,)) > 0}
                figures = []
                for processor in PROCESSORS:
                    time = cycles(options.mca, processor, body)
                    least = sum(n / most[processor, one] for one, n in adds.items())
                    figures.append(f"{time:.1f}, {least / time:.0%} |")
                print(f"| {compiler.split()[0]} | {precision} | {rows} x {4 * vectors} |",
                      " and ".join(f"{n} `{one}`" for one, n in adds.items()) +
                      f", {len(body)}, {sum('[sp' in line for line in body)} |", *figures)


if __name__ == "__main__":
    main()
