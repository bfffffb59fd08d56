#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# serve_lines.test.sh SERVE_LINES TRANSLATE MODEL SAMPLE: every line is answered once, with what translate says.
set -u
export LC_ALL=C OMP_NUM_THREADS=1
serve=$1 translate=$2 model=$3 sample=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 passed=0
check() { # check WHAT COMMAND...
  local what=$1
  shift
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $what"; fi
}

head -n 20 "$sample" >"$work/in"
"$translate" --model "$model" --input "$work/in" >"$work/expected"
"$serve" --model "$model" --size 5 --queue 3 <"$work/in" >"$work/out"
check 'exit code' [ $? -eq 0 ]
sort -n "$work/out" | cut -f 3 >"$work/texts"
check 'other translations than those of translate' cmp -s "$work/texts" "$work/expected"
check 'the latency of every line' [ "$(grep -c -E '^[0-9]+'$'\t''[0-9.]+ ms'$'\t' "$work/out")" -eq 20 ]

# Answers come while more may come.
mkfifo "$work/pipe"
"$serve" --model "$model" <"$work/pipe" >"$work/out" &
exec 3>"$work/pipe"
head -n 1 "$work/in" >&3
for _ in $(seq 300); do [ -s "$work/out" ] && break; sleep 0.1; done
check 'no answer before the end of the input' [ -s "$work/out" ]
exec 3>&-
wait

# What is settled is how the translation begins.
"$serve" --model "$model" --partial <"$work/in" >"$work/out"
check 'something is settled early' grep -q -F '... ' "$work/out"
check 'the translation does not begin with what was settled' awk -F '\t' '
  { text = $3 }
  sub(/^[.][.][.] /, "", text) { said[$1] = text; next }
  substr(text, 1, length(said[$1])) != said[$1] { exit 1 }' "$work/out"

"$serve" --model "$model" --deadline 0.001 <"$work/in" >"$work/out"
check 'every late line is answered' [ "$(grep -c -F $'\t''late ' "$work/out")" -eq 20 ]

printf 'Gr\374n\n\nDanke.\n' | "$serve" --model "$model" >"$work/out" 2>"$work/err"
check 'invalid UTF-8: exit code' [ $? -eq 1 ]
check 'invalid UTF-8: message' grep -q -F 'serve_lines: line 1: bad_request: not valid UTF-8' "$work/err"
check 'invalid UTF-8: the others' [ "$(wc -l <"$work/out")" -eq 2 ]
for option in '--size 0' '--width none' '--deadline -1' '--frobnicate'; do
  # shellcheck disable=SC2086  # option and value
  "$serve" --model "$model" $option </dev/null >"$work/out" 2>"$work/err"
  check "$option: exit code" [ $? -eq 2 ]
  check "$option: message" grep -q -F -e "${option%% *}" "$work/err"
done
"$serve" --model "$work/nowhere" </dev/null 2>"$work/err"
check 'no model: exit code' [ $? -eq 2 ]
check 'no model: message' grep -q -F 'nowhere' "$work/err"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
