#!/usr/bin/env bash
# What scripts/gpu-check does around its programs, with programs that do nothing: the order of the stages, time that fits, a build
# that is kept, at most six files.   gpu_check.test.sh ROOT PYTHON
set -euo pipefail
root=$1 python=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; tail -n 40 "$work/said" "$work"/tree/out/* >&2 2>/dev/null; exit 1; }
says() { grep -qF -- "$1" "$work/said" || fail "not said: $1"; }
silent() { ! grep -qF -- "$1" "$work/said" || fail "said: $1"; }

tree=$work/tree tools=$work/tools
mkdir -p "$tree"/{scripts,tools,docs/benchmarks,tests/libtorch} "$tools" "$work/packages/torch" "$work/packages/nvidia/cu13"/{include,lib}
cp "$root"/scripts/{gpu-check,lib.sh} "$tree/scripts"
cp "$root"/tools/{gpu-stages.sh,gpu-page} "$tree/tools"
echo 'a sentence' >"$tree/tests/libtorch/sample.tokens"
touch "$work/packages/nvidia/cu13/include/cublas_v2.h" "$work/packages/nvidia/cu13/lib/libcublas.so.13"
ln -s "$(command -v "$python")" "$tools/python3"

tool() { cat >"$1" && chmod +x "$1"; }
tool "$tools/nvcc" <<<'#!/bin/sh
echo "Cuda compilation tools, release 13.0, V13.0.1"'
tool "$tools/nvidia-smi" <<<'#!/bin/sh
case $* in
  *compute_cap*) echo 9.0 ;;
  *=name*driver*) echo "NVIDIA Example X1, 580.1, 80000 MiB, 1980 MHz, 2619 MHz, 700.00 W" ;;
  *) echo "NVIDIA Example X1" ;;
esac'
# Builds what the tests below say.
tool "$tools/cmake" <<'STUB'
#!/bin/bash
echo "cmake $*" >>"$WORK/cmake"
if [ "$1" = --build ]; then
  mkdir -p "$2/bin" "$2/c/cuda/CMakeFiles/sluice.cuda.instances.dir"
  touch "$2/c/cuda/CMakeFiles/sluice.cuda.instances.dir/instances_a.o"
  case $* in *sluice.cuda.tests*) cp "$WORK"/programs/sluice.*cuda* "$2/bin" ;; *) cp "$WORK"/programs/*torch* "$2/bin" ;; esac
fi
STUB
# At most four at once: each writes how many there are.
tool "$tools/compute-sanitizer" <<'STUB'
#!/bin/bash
touch "$WORK/running.$$"
sleep 0.2
ls "$WORK"/running.* | wc -l >>"$WORK/at_once"
rm "$WORK/running.$$"
echo "$*, fewer $SLUICE_FEWER" >>"$WORK/sanitized"
case $* in *racecheck*) echo "RACECHECK SUMMARY: 0 hazards displayed" ;; *) echo "ERROR SUMMARY: 0 errors" ;; esac
STUB
tool "$tree/tools/gpu_peers.py" <<<'import sys
assert "\"sluice\"" in open(sys.argv[sys.argv.index("--measured") + 1]).read()
print("{\"name\":\"PyTorch, eager\",\"figure\":7}")'

mkdir "$work/programs"
for name in a b log_softmax_top_k; do tool "$work/programs/sluice.test.cuda.$name" <<<'#!/bin/sh
echo "${0##*.} $*" >>"$WORK/tested"
echo "All tests passed"'; done
tool "$work/programs/sluice.bench.cuda.top_k" <<<'#!/bin/bash
[ ! -e "$WORK/no_device" ] || exit 3
echo "{\"name\":\"device\",\"device\":\"X1\",\"processors\":1,\"cache\":1,\"capability\":\"9.0\"}"
echo "{\"name\":\"sluice\",\"experiment\":\"$*\",\"us\":3}"'
tool "$work/programs/sluice.test.libtorch.torch_transformer" <<<'#!/bin/sh
echo "All tests passed"'
tool "$work/programs/sluice.bench.torch" <<<'#!/bin/sh
echo "{\"name\":\"decoding\",\"figure\":1}"'
tool "$work/programs/translate_torch" <<<'#!/bin/sh
echo "a translation"'
cat >"$work/packages/torch/__init__.py" <<PY
class utils: cmake_prefix_path = "$work/packages"
class version: cuda = "13.0"
__version__ = "2.11.0"
PY

check() { # check <exit code> <argument>...: in the tree, with nothing of this machine's
  local expected=$1 status=0
  shift
  (cd "$tree" && WORK=$work PATH=$tools:/usr/bin:/bin PYTHONPATH=$work/packages GIT_CEILING_DIRECTORIES=$work \
    timeout 60 scripts/gpu-check --out out --jobs 2 "$@") >"$work/said" 2>&1 || status=$?
  [ "$status" -eq "$expected" ] || fail "gpu-check $*: exit code $status, not $expected"
  [ "$(find "$tree/out" -type f | wc -l)" -le 6 ] || fail "more than six files: $(ls "$tree/out")"
}

# Wrong arguments.
check 2
says "--commit"
check 2 --commit abc --stages build,sanitisers
says "what is sanitisers?"
check 1 --commit abc --stages tests
says "nothing is built"

# All of it.
check 0 --commit abc
says "all well"
order=$(sed -n 's/^ok      \(.*\), [0-9]* s of .*/\1/p' "$work/said" | paste -sd ' ')
[ "$order" = "machine configure build smoke tests benchmarks page compute-sanitizer libtorch,build libtorch,tests \
libtorch,decodings libtorch,translations PyTorch page,again" ] || fail "order: $order"
grep -q -- '-DSLUICE_CUDA_STRICT=OFF .*-DSLUICE_NATIVE=ON' "$work/cmake" || fail "warnings are errors, or for any processor"
grep -q -- '--build build/gpu .*-- -k 0' "$work/cmake" || fail "a unit that fails stops all"
grep -q -- "-DSLUICE_TORCH_KERNELS=$tree/build/gpu/c/cuda/.*/instances_a.o" "$work/cmake" || fail "libtorch compiles the kernels again"
grep -q -- "-DSLUICE_CUBLAS_ROOT=$work/packages/nvidia/cu13" "$work/cmake" || fail "PyPI's cuBLAS was not found"
grep -q -- '-B build/gpu/libtorch .*-DSLUICE_TORCH=ON' "$work/cmake" || fail "libtorch: where?"
# One program's types by themselves: a case runs once.
printf '%s\n' 'a ' 'b ' 'log_softmax_top_k *- __half' 'log_softmax_top_k *- __nv_bfloat16' 'log_softmax_top_k *- float' \
  'log_softmax_top_k ~[types]' | cmp - <(grep -E '^(a|b|log)' "$work/tested" | sort -u) || fail "tests: $(cat "$work/tested")"
page=$tree/docs/benchmarks/gpu-example-x1.md
grep -qi 'torch.*2\.11\.0' "$page" || fail "the page lacks PyTorch's version"
for figure in 'sluice' 'PyTorch, eager' 'decoding' 'translate_torch'; do grep -qF "$figure" "$page" || fail "not on the page: $figure"; done
for tool in memcheck racecheck initcheck; do
  [ "$(grep -c "tool $tool .*fewer 200" "$work/sanitized")" -eq 3 ] || fail "$tool: $(cat "$work/sanitized")"
done
[ "$(sort -n "$work/at_once" | tail -1)" -le 4 ] || fail "more than four at once"
[ "$(sort -n "$work/at_once" | tail -1)" -ge 2 ] || fail "one after the other"

# A second call over what is built and measured.
rm "$work/cmake" "$work/sanitized" "$page"
check 0 --commit abc --stages sanitizers,page
[ ! -e "$work/cmake" ] || fail "built again"
silent "ok      tests"
says "ok      compute-sanitizer"
grep -qF 'PyTorch, eager' "$page" || fail "figures were not kept"

# What fails stops nothing; what hangs does not take the time of the others.
cp "$work/programs/sluice.test.cuda.b" "$work/b"
tool "$work/programs/sluice.test.cuda.b" <<<'#!/bin/sh
echo "a test failed"; exit 1'
tool "$work/programs/sluice.bench.torch" <<<'#!/bin/sh
sleep 100'
began=$SECONDS
check 1 --commit abc --limit 40
[ $((SECONDS - began)) -le 40 ] || fail "it took $((SECONDS - began)) s"
says "FAILED  tests"
says "a test failed"
says "FAILED  libtorch,decodings: not finished in"
for part in benchmarks page compute-sanitizer libtorch,translations PyTorch page,again; do says "ok      $part"; done
cp "$work/b" "$work/programs/sluice.test.cuda.b"

# What its time ends is cut, not failed, and leaves its figures; a wrong answer beside it is a failure all the same.
tool "$work/programs/sluice.bench.torch" <<<'#!/bin/sh
echo "{\"name\":\"decoding\",\"figure\":1}"; exit 4'
tool "$tools/compute-sanitizer" <<<'#!/bin/sh
case $* in *racecheck*cuda.b*) sleep 100 ;; esac
echo "ERROR SUMMARY: 0 errors"; echo "RACECHECK SUMMARY: 0 hazards displayed"'
check 0 --commit abc --limit 24
says "cut     libtorch,decodings"
says "cut     compute-sanitizer"
says "cut, as no time was left: compute-sanitizer; libtorch,decodings;"
says "all well"
grep -qF 'decoding' "$page" || fail "what was cut left no figures"
cp "$work/programs/sluice.bench.cuda.top_k" "$work/top_k"
tool "$work/programs/sluice.bench.cuda.top_k" <<<'#!/bin/sh
case $* in *smoke*) exit 0 ;; esac
exit 1'
cp "$work/top_k" "$work/programs/sluice.bench.cuda.z" && sed -i '$a exit 4' "$work/programs/sluice.bench.cuda.z"
check 1 --commit abc --stages build,benchmarks
says "FAILED  benchmarks"
rm "$work/programs/sluice.bench.cuda.z" && cp "$work/top_k" "$work/programs/sluice.bench.cuda.top_k"

# For another machine.
tool "$tools/strip" <<<'#!/bin/sh
echo "strip $*" >>"$WORK/stripped"'
tool "$tools/ldd" <<<'#!/bin/sh
printf "\tlibgomp.so.1 => $WORK/libgomp.so.1 (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x1)\n"'
echo gomp >"$work/libgomp.so.1"
check 0 --commit abc --for 90
grep -q -- '-DCMAKE_CUDA_ARCHITECTURES=90 .*-DSLUICE_NATIVE=OFF' "$work/cmake" || fail "for which machine?"
[ "$(ls "$tree/build/gpu/bin/lib")" = libgomp.so.1 ] || fail "libraries: $(ls "$tree/build/gpu/bin/lib")"
[ "$(wc -l <"$work/stripped")" -eq 4 ] || fail "not stripped: $(cat "$work/stripped")"
silent "ok      smoke"
rm "$tools/nvcc" "$work/cmake"
check 0 --commit abc --stages tests,benchmarks,page
[ ! -e "$work/cmake" ] || fail "built where it only runs"
check 2 --commit abc --for h100
tool "$tools/nvcc" <<<'#!/bin/sh
echo "Cuda compilation tools, release 13.0, V13.0.1"'

# Without a PyTorch, without a device.
echo 'raise ImportError("none")' >"$work/packages/torch/__init__.py"
check 1 --commit abc --stages build,libtorch,page # no figures are a page of nothing
says "left out  libtorch: no PyTorch for CUDA"
touch "$work/no_device"
check 3 --commit abc
says "NO DEVICE"
silent "FAILED"
echo "gpu-check: all as promised"
