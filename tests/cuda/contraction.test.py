# SPDX-License-Identifier: Apache-2.0
"""Whether the last bits of answers are ours or the compiler's: the machine code of every kernel has to be the same, byte for
byte, with -fmad=true (nvcc may make one operation of a product and a sum where it likes) and with -fmad=false. And, by the PTX that
is there then, whether kernels that may start early wait (waits.py).

  contraction.test.py NVCC ARCHITECTURE FOLDER SOURCE INCLUDE-DIRECTORY...

FOLDER: where the build has kept the cubins of the same kernels (nvcc --keep), which are with -fmad=true; where it has none, they are
compiled here, too.
"""
import concurrent.futures
import pathlib
import struct
import subprocess
import sys
import tempfile

import waits


def code_of(path):
    """The machine code of each kernel in a cubin (64-bit ELF)."""
    data = path.read_bytes()
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
    names = sections[names_at][4]
    code = {}
    for section in sections:
        begin = names + section[0]
        name = data[begin : data.index(b"\0", begin)].decode()
        if name.startswith(".text."):
            code[name[6:]] = data[section[4] : section[4] + section[5]]
    return code


def compiled(source, fmad, work):
    output = work / f"{source.stem}-{fmad}.cubin"
    kept = work / f"{source.stem}-{fmad}"
    kept.mkdir()
    subprocess.run(
        [nvcc, "-std=c++20", *(f"-I{folder}" for folder in folders), f"-arch={architecture}", f"-fmad={fmad}", "-cubin",
         "--keep", "--keep-dir", str(kept), str(source), "-o", str(output)],
        check=True,
    )
    return code_of(output)


nvcc, architecture, kept, source, *folders = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    work = pathlib.Path(folder)
    # What would be seen, if there were something to see.
    contracted = work / "contracted.cu"
    contracted.write_text("__global__ void kernel(float* x) { x[0] = x[1] * x[2] + x[3]; }\n")
    if compiled(contracted, "true", work) == compiled(contracted, "false", work):
        sys.exit("a product and a sum became the same code with -fmad=true and false: this test sees nothing")

    fused = {}
    for cubin in sorted(pathlib.Path(kept).glob(f"*{architecture}.cubin")):
        fused |= code_of(cubin)
    print(f"{len(fused)} kernels kept by the build")
    with concurrent.futures.ThreadPoolExecutor() as both:
        missing = [] if fused else ["true"]
        rounded, *others = both.map(lambda fmad: compiled(pathlib.Path(source), fmad, work), ["false", *missing])
        fused = fused or others[0]
    assert len(fused) > 0 and fused.keys() == rounded.keys(), "no kernels, or not the same ones"
    different = [name for name in fused if fused[name] != rounded[name]]
    print("\n".join(f"not the same code: {name}" for name in different))
    print(f"{architecture}: {len(fused)} kernels, {len(different)} differ")

    waits.check_itself()
    (ptx,) = (work / f"{pathlib.Path(source).stem}-false").glob("*.ptx")
    hasty, patient = waits.missing(ptx.read_text())
    print("\n".join(hasty))
    print(f"{patient} kernels wait before they touch memory, {len(hasty)} do not")
    assert patient > 0, "no kernel was found to wait"
    sys.exit(1 if different or hasty else 0)
