#!/usr/bin/env bash
# What tools/check-ptxas promises.   check_ptxas.test.sh SCRIPT [NVCC]
set -euo pipefail
check=$1 nvcc=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# expect <exit code> <regex of the message> <argument>...
expect() {
  local code=$1 regex=$2 status=0
  shift 2
  "$check" "$@" >"$work/out" 2>&1 || status=$?
  [ "$status" -eq "$code" ] || fail "exit code $status, expected $code: $* ($(cat "$work/out"))"
  [ -z "$regex" ] || grep -qE -- "$regex" "$work/out" || fail "no \"$regex\" in: $(cat "$work/out")"
}

# report <stack> <stores> <loads> <registers>
report() {
  cat <<LOG
[3/9] Building CUDA object a.cu.o
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1aPf' for 'sm_90'
ptxas info    : Function properties for _Z1aPf
    $1 bytes stack frame, $2 bytes spill stores, $3 bytes spill loads
ptxas info    : Used $4 registers, used 1 barriers, 528 bytes smem
ptxas info    : Compile time = 3.1 ms
LOG
}
report 0 0 0 64 >"$work/good"
report 0 0 0 65 >"$work/many"
report 0 8 0 32 >"$work/stores"
report 0 0 8 32 >"$work/loads"
report 16 0 0 32 >"$work/stack"
cat "$work/many" "$work/good" >"$work/first_of_two"
: >"$work/empty"

expect 0 '' "$work/good"
expect 0 ' 64 of  64 registers, sm_90: _Z1aPf' --print "$work/good"
expect 1 '_Z1aPf, sm_90: 65 registers, 64 are its budget' "$work/many"
expect 1 '65 registers' "$work/first_of_two"
expect 1 '65 registers' "$work/good" "$work/many"
expect 1 '_Z1aPf, sm_90: registers are spilled: 8 bytes stored, 0 loaded' "$work/stores"
expect 1 'registers are spilled: 0 bytes stored, 8 loaded' "$work/loads"
expect 1 'a stack frame of 16 bytes' "$work/stack"
expect 2 'no report of ptxas' "$work/empty"
expect 2 'nothing to check'
expect 0 '' --registers 65 "$work/many"
printf '# comment\n_Z1a 65 # why\n.* 10\n' >"$work/budgets"
expect 0 '' --budgets "$work/budgets" "$work/many"
printf '_Z1b 65\n' >"$work/budgets"
expect 1 '65 registers' --budgets "$work/budgets" "$work/many"
printf '_Z1a\n' >"$work/budgets"
expect 2 'budgets: _Z1a' --budgets "$work/budgets" "$work/good"
expect 2 'cannot be read' --budgets "$work/nowhere" "$work/good"

# As a launcher: the command's exit code and words, and the report.
expect 0 '^words$' -- sh -c "echo words >&2; cat '$work/good' >&2"
grep -q 'Used 64' "$work/out" && fail "the report is passed on"
expect 1 '65 registers' -- sh -c "cat '$work/many' >&2"
expect 7 '^words$' -- sh -c "echo words >&2; exit 7"
expect 2 'no report of ptxas' -- true
expect 0 '' --keep "$work/kept" -- sh -c "cat '$work/good' >&2" nvcc -o "$work/some/a.cu.o" a.cu
cmp "$work/good" "$work/kept/a.cu.o.ptxas" || fail "another report is kept"

if [ -n "$nvcc" ]; then
  cat >"$work/kernels.cu" <<'CUDA'
#ifdef SPILLS
__global__ void __launch_bounds__(1024, 2) kernel(float const* from, float* to) {
  float x[64];
  for (int i = 0; i < 64; ++i) x[i] = from[i * 1024 + threadIdx.x];
  for (int j = 0; j < 64; ++j) {
    float sum = 0;
    for (int i = 0; i < 64; ++i) sum += x[i] * x[(i + j) % 64];
    to[j * 1024 + threadIdx.x] = sum;
  }
}
#else
__global__ void kernel(float const* from, float* to) { to[threadIdx.x] = from[threadIdx.x]; }
#endif
CUDA
  compile=("$nvcc" -arch=sm_90 -Xptxas -v -cubin -o "$work/out.cubin" "$work/kernels.cu")
  expect 0 '' -- "${compile[@]}"
  expect 1 'kernel.*sm_90: registers are spilled' -- "${compile[@]}" -DSPILLS
  expect 1 'registers, 4 are its budget' --registers 4 -- "${compile[@]}"
fi
echo "check-ptxas: all as promised"
