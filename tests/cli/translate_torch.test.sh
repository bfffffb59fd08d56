#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# translate_torch.test.sh TRANSLATE_TORCH PIECES TRANSLATE MODEL SAMPLE TOKENS: the translations of translate, by torch.
set -u
export LC_ALL=C OMP_NUM_THREADS=1
torch=$1 pieces=$2 translate=$3 model=$4 sample=$5 tokens=$6
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 passed=0
check() { # check WHAT COMMAND...
  local what=$1
  shift
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $what"; fi
}

"$pieces" encode "$model" <"$sample" >"$work/tokens"
check 'the tokens of the tests are those of the sample' cmp -s "$work/tokens" "$tokens"
"$pieces" decode "$model" <"$work/tokens" >"$work/back"
check 'tokens make the text again' cmp -s "$work/back" "$sample"

for search in greedy beam; do
  "$translate" --model "$model" --input "$sample" --search "$search" >"$work/expected"
  "$torch" --model "$model" --search "$search" <"$work/tokens" >"$work/out"
  check "$search: exit code" [ $? -eq 0 ]
  "$pieces" decode "$model" <"$work/out" >"$work/text"
  check "$search: the translations of translate" cmp -s "$work/text" "$work/expected"
done
"$torch" --model "$model" --input "$work/tokens" --schedule streaming --batch 7 --scores --time >"$work/scored" 2>"$work/err"
check 'streaming: exit code' [ $? -eq 0 ]
cut -f 2 "$work/scored" >"$work/streamed"
check 'streaming: the same' cmp -s "$work/streamed" "$work/out"
check 'a score for every line' [ "$(grep -c -E '^-[0-9]+\.[0-9]{6}'$'\t''[0-9]' "$work/scored")" -eq "$(wc -l <"$sample")" ]
check 'the time' grep -q -E '^[0-9]+ sentences, [0-9]+ tokens, [0-9.]+ seconds$' "$work/err"
"$pieces" decode "$model" <"$work/scored" | cut -f 2 >"$work/text"
check 'decode leaves the scores alone' cmp -s "$work/text" "$work/expected"

printf '\n518 424\n' | "$torch" --model "$model" >"$work/out"
check 'an empty line: exit code' [ $? -eq 0 ]
check 'an empty line stays empty' [ "$(head -n 1 "$work/out")" = '' ]
check 'an empty line: the other' [ "$(wc -l <"$work/out")" -eq 2 ]
for line in '5 x' '8000' '-1' '1.5'; do
  printf '3\n%s\n' "$line" | "$torch" --model "$model" >"$work/out" 2>"$work/err"
  check "$line: exit code" [ $? -eq 2 ]
  check "$line: message" grep -q -F 'line 2: must be tokens in [0, 8000)' "$work/err"
  printf '3\n%s\n' "$line" | "$pieces" decode "$model" >"$work/out" 2>"$work/err"
  check "decode $line: exit code" [ $? -eq 2 ]
  check "decode $line: message" grep -q -F 'line 2: not a line of tokens' "$work/err"
done
for option in '--search sideways' '--type int' '--width 0' '--batch none' '--frobnicate' '--input nowhere'; do
  # shellcheck disable=SC2086  # option and value
  "$torch" --model "$model" $option </dev/null >"$work/out" 2>"$work/err"
  check "$option: exit code" [ $? -eq 2 ]
  check "$option: message" grep -q -F -e "${option##* }" "$work/err"
done
"$torch" --model "$work/nowhere" </dev/null 2>"$work/err"
check 'no model: exit code' [ $? -eq 1 ]
check 'no model: message' grep -q -F 'nowhere' "$work/err"
"$torch" --model "$model" --device toaster </dev/null 2>"$work/err"
check 'no device: exit code' [ $? -eq 1 ]
check 'no device: message' grep -q -F 'toaster' "$work/err"
check 'no device: one line' [ "$(wc -l <"$work/err")" -eq 1 ]
"$pieces" sideways </dev/null 2>"$work/err"
check 'pieces: exit code' [ $? -eq 2 ]
check 'pieces: usage' grep -q -F 'usage: pieces' "$work/err"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
