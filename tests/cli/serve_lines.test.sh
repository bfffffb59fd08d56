#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# serve_lines.test.sh SERVE_LINES TRANSLATE MODEL SAMPLE: every line is answered once, with what translate says.
# shellcheck disable=SC2016  # awk
program=$(realpath "$1") translate=$(realpath "$2") model=$(realpath "$3") sample=$(realpath "$4")
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "$0")")/program.sh"

head -n 20 "$sample" >in
"$translate" --model "$model" --input in >expected
"$program" --model "$model" --size 5 --queue 3 <in >out
check 'exit code' [ $? -eq 0 ]
sort -n out | cut -f 3 >texts
check 'other translations than those of translate' cmp -s texts expected
check 'the latency of every line' [ "$(grep -c -E '^[0-9]+'$'\t''[0-9.]+ ms'$'\t' out)" -eq 20 ]

# Answers come while more may come.
mkfifo pipe
"$program" --model "$model" <pipe >out &
exec 3>pipe
head -n 1 in >&3
for _ in $(seq 300); do [ -s out ] && break; sleep 0.1; done
check 'no answer before the end of the input' [ -s out ]
exec 3>&-
wait

# What is settled is how the translation begins.
"$program" --model "$model" --partial <in >out
check 'something is settled early' grep -q -F '... ' out
check 'the translation does not begin with what was settled' awk -F '\t' '
  { text = $3 }
  sub(/^[.][.][.] /, "", text) { said[$1] = text; next }
  substr(text, 1, length(said[$1])) != said[$1] { exit 1 }' out

"$program" --model "$model" --deadline 0.001 <in >out
check 'every late line is answered' [ "$(grep -c -F $'\t''late ' out)" -eq 20 ]

printf 'Gr\374n\n\nDanke.\n' | "$program" --model "$model" >out 2>err
check 'invalid UTF-8: exit code' [ $? -eq 1 ]
check 'invalid UTF-8: message' grep -q -F 'serve_lines: line 1: bad_request: not valid UTF-8' err
check 'invalid UTF-8: the others' [ "$(wc -l <out)" -eq 2 ]
for option in '--size 0' '--width none' '--deadline -1' '--frobnicate'; do
  # shellcheck disable=SC2086  # option and value
  "$program" --model "$model" $option </dev/null >out 2>err
  check "$option: exit code" [ $? -eq 2 ]
  check "$option: message" grep -q -F -e "${option%% *}" err
done
"$program" --model nowhere </dev/null 2>err
check 'no model: exit code' [ $? -eq 2 ]
check 'no model: message' grep -q -F 'nowhere' err

echo Danke. | "$program" --model "$model" >/dev/full 2>err
check 'a full disk: exit code' [ $? -eq 1 ]
check 'a full disk: message' grep -q -F 'standard output cannot be written' err

report
