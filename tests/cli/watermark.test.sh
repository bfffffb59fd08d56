#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# watermark.test.sh WATERMARK: the command line of watermark.
# shellcheck disable=SC2034,SC2154  # what program.sh reads and sets
program=$(realpath "$1")
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "$0")")/program.sh"

# detects PATTERN INPUT ARGUMENTS...: standard output matches, and has a line for each of the input's.
detects() {
  local pattern=$1 input=$2
  shift 2
  if run detect "$@" >out 2>err <"$input" && [ ! -s err ] && grep -q -E -- "$pattern" out &&
    [ "$(wc -l <out)" -eq "$(wc -l <"$input")" ]; then pass
  else fail "watermark detect $* <$input: $(cat out err)"; fi
}

printf '0x1234567890abcdef # ours\n' >key
printf '5 6 7 8 5 6 7 8\n1 [2] 3\n\n' >texts
printf '5 x\n' >bad
check 'key' run key new
check 'the key may be read by its owner only' test "$(stat -c %a new)" = 600
check 'a key of eight numbers' run key --words 8 eight
check 'eight numbers' test "$(wc -l <eight)" -eq 8
detects '"tokens":8,"scored":5,"masked":0,"repeated":3' texts --key new --width 1
detects '"tokens":3,"scored":2,"masked":1' texts --key new
detects '^\{"p_value":1.0,"score":0.0,"expected":0.0,"tokens":0' texts --key key
detects '"windows_p_value":' texts --key key --window 4 --scheme red_green --prf philox --gamma 0.5
detects '"expected":32.0' texts --key eight --scheme synthid --prf synthid_text
run detect --key key <texts >out && cp out before && run detect --key key <texts >out
check 'twice the same' cmp -s before out

unborn=(absent)
input=texts
refused 'new = .*|is there already' key new
refused 'key needs FILE' key
refused 'detect needs --key' detect
refused 'none = |cannot be read' detect --key none
refused "detect reads standard input, not 'texts'" detect texts --key key
refused "'tea' is not one of" tea
refused "'best' is not one of" detect --key key --scheme best
refused 'is for the scheme synthid' detect --key eight --prf synthid_text
refused 'must be 1 for the prf philox' detect --key eight --prf philox
refused "'0' is not a number from 1 to 16" detect --key key --width 0
refused "'33' is not a number from 1 to 32" key absent --words 33
input=bad
refused "line 1: 'x' is not a token" detect --key key

report
