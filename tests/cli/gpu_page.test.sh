#!/usr/bin/env bash
# What tools/gpu-page makes of figures.   gpu_page.test.sh SCRIPT PYTHON
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
  figure "sluice, ring" peers 320 250000 5 320000000 160
  figure "lists per thread, three launches (16)" peers 320 250000 5 320000000 500
  figure "PyTorch, eager" peers 320 250000 5 320000000 1400
  figure sluice fused 128 85000 1 43520000 20
  figure "separate passes" fused 128 85000 1 43520000 100
  echo '{"name":"PyTorch, compile","experiment":"peers","rows":320,"V":250000,"k":5,"type":"float32","data":"normal","error":"a|b"}'
  decoding() { # <search> <schedule> <sentences a second> <outside>
    printf '{"name":"%s","experiment":"end to end","schedule":"%s","search":"device, merged","type":"float16","size":64,"model":"6+6","device":"cuda","sentences":640,"steps":9,"sentences_per_s":%s,"tokens_per_s":7000,"outside":%s,"output":1}\n' "$@"
  }
  decoding greedy batched 100 9
  decoding greedy streaming 120 9
  decoding greedy "streaming, refill 1" 150 9
  decoding "beam 5" "batched, sorted" 50 4
  echo '{"name":"beam 50","experiment":"end to end","schedule":"streaming","search":"host","type":"float16","size":64,"error":"no time was left"}'
  echo '{"name":"translate_torch","experiment":"translations","text":"news","type":"float32","sentences":2000,"equal":1995,"percent":99.75}'
  echo '{"name":"full","experiment":"projection","rows":20,"V":128000,"type":"float16","us":70,"exact":true}'
  echo '{"name":"sluice","experiment":"projection","rows":20,"V":128000,"type":"float16","us":10.5,"active":[6,16],"note":"a|b"}'
  echo '{"name":"sentences","experiment":"clustered","rows":40,"V":250000,"type":"float16","us":10,"dense / this":4.5}'
  echo '{"name":"batch","experiment":"clustered","rows":40,"V":250000,"type":"float16","us":12,"dense / this":3.75}'
  echo '{"name":"lonely","figure":3}'
  figure sluice peers 5 32000 5 640000 8
  figure "sluice, clusters" peers 5 32000 5 640000 6.4
  figure "read only" share 7 77 1 2156 1 # nothing of ours to hold it against
  echo '{"name":"cut sh'
} >"$work/figures"
echo '{"driver":"1.2","nvcc":"V13","commit":"abc","command":"scripts/gpu-check","date":"2000-01-01"}' >"$work/machine"

"$python" "$page" --machine "$work/machine" "$work/figures" >"$work/page" 2>"$work/errors"
grep -q 'half a line' "$work/errors" || fail "half a line passes unnoticed"
says "| date | 2000-01-01 |"
says "A copy within the device moves 2,000 GB/s"
says "| share of the copy's bandwidth from 100 MB, lowest | >= 80 % | yes | 80 |"
says "| share of the copy's bandwidth from 40 MB, direct loads, lowest | >= 80 % | yes | 80 |"
says "| share of the copy's bandwidth from 40 MB, rings, lowest | >= 80 % | yes | 100 |"
says "| 320 | 250,000 | 5 | float32 | normal | cold | 200 | 160 | 80 % | 100 % | 1.25 |"
says "| 5 | 32,000 | 5 | float32 | normal | cold | 8 | 6.4 | 1.25 |"
says "| times as fast as PyTorch, eager, lowest | >= 5 | yes | 7 |"
says "| times as fast as PyTorch, eager, from 40 MB, lowest | >= 8 | **no** | 7 |"
says "| times as fast as PyTorch, compile, lowest | >= 5 | not measured |  |"
says "| fused over separate passes, beam 1 | >= 4.3 | yes | 5 |"
says "| 320 | 250,000 | 5 | float32 | cold | 200 | 1,600 | 80 % | 100 | 2.5 | 7 |"
says "| outside the model, beam 5, batches of 64, highest, in per cent of a step | <= 3 | **no** | 4 |"
says "| streaming, its better refill, over batches, greedy, size 64, order of the file, lowest | >= 1.3 | yes | 1.5 |"
says "| clustered over dense projection, V = 250,000, lowest | >= 4 | **no** | 3.75 |"
says "| clustered over dense projection, V = 128,000, lowest | >= 2.4 | not measured |  |"
says "| translations that are the CPU's, float, lowest, in per cent | >= 99.5 | yes | 99.8 |"
says "| greedy | streaming | device, merged | float16 | 64 | 6+6 | cuda | 640 | 9 | 120 | 7,000 | 1.2 | 9 | 1 |"
says "| translate_torch | news | float32 | 2,000 | 1,995 | 99.75 |"
says "| beam 50, streaming, host | end to end |  |  |  | float16 | no time was left |"
# Programs that the page does not know.
says "## Projection"
says "| name | type | exact | active | note | rows | V | us |"
says "| full | float16 | true |  |  | 20 | 128,000 | 70 |"
says "| sluice | float16 |  | [6, 16] | a/b | 20 | 128,000 | 10.5 |"
says "| lonely | 3 |"
says "| read only | float32 | normal | cold | 7 | 77 | 1 | 2,156 | 1 |"
says "| PyTorch, compile | peers | 320 | 250,000 | 5 | float32 | a/b |"

: >"$work/nothing"
! "$python" "$page" "$work/nothing" >"$work/page" 2>&1 || fail "a page of nothing"
decoding greedy streaming 1 1 >"$work/decodings"
"$python" "$page" "$work/decodings" >"$work/page" || fail "no page without sluice.bench.cuda"
says "| streaming, its better refill, over batches, greedy, size 64, order of the file, lowest | >= 1.3 | not measured |  |"
echo "gpu-page: all as promised"
