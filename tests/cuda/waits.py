# SPDX-License-Identifier: Apache-2.0
"""Whether kernels that may start early (device/launch.cuh) wait before they touch memory, by what nvcc makes of them in PTX."""
import re

# Never started early: they neither wait nor let others start before they have ended.
ORDINARY = re.compile(
    r"gather_kernel|place_kernel|beam_begin_kernel|indirection_kernel|page_kernel|verification_kernel|line_ring_kernel|cub")
ENTRY = re.compile(r"\.entry\s+(\w+)\(.*?\n\{\n(.*?)\n\}", re.S)
# What touches memory that others see, and calls, which may. Loads without a space of their own may be of any.
TOUCH = re.compile(r"\s(?:(?:ld|st|atom|red|prefetch\w*|cp)\.(?!param|shared|const|local)|call)")
WAIT, START = "griddepcontrol.wait", "griddepcontrol.launch_dependents"


def missing(ptx):
    """A line for every kernel of this PTX that does not wait as it should, and the number of those that do."""
    faults, well = [], 0
    for name, body in ENTRY.findall(ptx):
        if ORDINARY.search(name):
            if WAIT in body or START in body:
                faults.append(f"{name}: is no longer an ordinary kernel")
            continue
        lines = body.split("\n")
        at = {what: next((i for i, line in enumerate(lines) if what in line), None) for what in (WAIT, START)}
        touch = next((i for i, line in enumerate(lines) if TOUCH.search(line)), len(lines))
        branch = next((i for i, line in enumerate(lines) if re.search(r"\s(bra|ret|exit|bar)\b", line)), len(lines))
        if None in at.values():
            faults.append(f"{name}: does not wait, or lets nobody start")
        elif not at[WAIT] < at[START] < branch:
            faults.append(f"{name}: not every thread waits, then lets others start")
        elif touch < at[WAIT]:
            faults.append(f"{name}: touches memory before it waits: {lines[touch].strip()}")
        else:
            well += 1
    return faults, well


def kernel(*body):
    return "\n.visible .entry some_kernel(\n\t.param .u64 x\n)\n{\n" + "\n".join(f"\t{line}" for line in body) + "\n}\n"


def check_itself():
    """What would be seen, if there were something to see."""
    wait, start, load = f"{WAIT};", f"{START};", "ld.global.nc.u32 %r1, [%rd1];"
    launch = "ld.param.u64 %rd1, [x];"
    assert missing(kernel(launch, wait, start, load)) == ([], 1)
    wrong = [kernel(launch, load), kernel(launch, load, wait, start), kernel(launch, wait, load), kernel(start, wait),
             kernel(launch, "@%p1 bra $L1;", wait, start), kernel("st.u32 [%rd1], 1;", wait, start),
             kernel("atom.global.add.u32 %r1, [%rd1], 1;", wait, start), kernel("call f, ();", wait, start)]
    for ptx in wrong:
        assert len(missing(ptx)[0]) == 1, ptx
