#!/usr/bin/env bash
# What scripts/gpu-page makes of figures.   gpu_page.test.sh SCRIPT PYTHON
set -euo pipefail
page=$1 python=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n%s\n' "$*" "$(cat "$work/page")" >&2; exit 1; }
says() { grep -qF -- "$1" "$work/page" || fail "not said: $1"; }

# figure <name> <experiment> <rows> <V> <k> <bytes> <us>
figure() {
  printf '{"name":"%s","experiment":"%s","rows":%s,"V":%s,"k":%s,"type":"float32","data":"normal","bytes":%s,"cache":"cold","us":%s}\n' "$@"
}
{
  echo '{"name":"device","device":"Example","processors":10,"cache":1048576,"capability":"9.0"}'
  echo '{"name":"empty kernel","cache":"cold","us":2}'
  echo '{"name":"copy","bytes":2000000000,"cache":"cold","us":1000}' # 2,000 GB/s
  figure sluice peers 320 250000 5 320000000 200
  figure "lists per thread, three launches (16)" peers 320 250000 5 320000000 500
  figure "PyTorch, eager" peers 320 250000 5 320000000 1400
  figure sluice fused 128 85000 1 43520000 20
  figure "separate passes" fused 128 85000 1 43520000 100
  echo '{"name":"PyTorch, compile","experiment":"peers","rows":320,"V":250000,"k":5,"type":"float32","data":"normal","error":"a|b"}'
  echo '{"name":"cut sh'
} >"$work/figures"
echo '{"driver":"1.2","nvcc":"V13","commit":"abc","command":"scripts/gpu-check","date":"2000-01-01"}' >"$work/machine"

"$python" "$page" --machine "$work/machine" "$work/figures" >"$work/page" 2>"$work/errors"
grep -q 'half a line' "$work/errors" || fail "half a line passes unnoticed"
says "| date | 2000-01-01 |"
says "A copy within the device moves 2,000 GB/s"
says "| share of the copy's bandwidth from 100 MB, lowest | >= 80 % | yes | 80 |"
says "| times as fast as PyTorch, eager, lowest | >= 5 | yes | 7 |"
says "| times as fast as PyTorch, eager, from 40 MB, lowest | >= 8 | **no** | 7 |"
says "| times as fast as PyTorch, compile, lowest | >= 5 | not measured |  |"
says "| fused over separate passes, beam 1 | >= 4.3 | yes | 5 |"
says "| 320 | 250,000 | 5 | float32 | cold | 200 | 1,600 | 80 % | 100 | 2.5 | 7 |"
says "| PyTorch, compile | peers | 320 | 250,000 | 5 | float32 | a/b |"

: >"$work/nothing"
! "$python" "$page" "$work/nothing" >"$work/page" 2>&1 || fail "a page of nothing"
echo "gpu-page: all as promised"
