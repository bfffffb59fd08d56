#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# translate_demands.test.sh TRANSLATE MODEL SAMPLE: translate --constraints: words of the reference, sample.en beside sample.de,
# in four ways. What was promised is looked for in the text, by grep.
# shellcheck disable=SC2016,SC2086,SC2094,SC2154  # options are split on purpose; translate.sh sets the rest
# shellcheck source=tests/cli/translate.sh
. "$(dirname "$(realpath "$0")")/translate.sh"

reference=${sample%.de}.en

# holds TEXT PHRASE: as whole words, as written or with a capital where a sentence begins. (grep only where it may find it.)
holds() {
  local capital=${2^}
  [[ $1 == *"$2"* ]] && grep -q -w -F -e "$2" <<<"$1" && return 0
  [[ $1 == *"$capital"* ]] && grep -q -w -F -e "$capital" <<<"$1" &&
    grep -q -E "(^|[.!?][^[:alnum:]]* )[^[:alnum:] ]*$capital([^[:alnum:]_]|\$)" <<<"$1"
}
# broken FILE OUTPUT: numbers of lines whose demands (one a line of FILE: number, all or none, phrase) the text does not meet.
broken() {
  local text number kind phrase
  mapfile -t -O 1 text <"$2"
  while IFS=$'\t' read -r number kind phrase; do
    if holds "${text[number]}" "$phrase"; then [ "$kind" = all ] || echo "$number"
    else [ "$kind" = none ] || echo "$number"; fi
  done <"$1" | sort -n -u
}
reported() { sed -n 's/^translate: [^:]*:\([0-9]*\): .*\(constraints are met\|is forbidden\).*/\1/p' "$1" | sort -n -u; }

# ---- what is promised: words of the reference, in four ways ----------------------------------------------------------------

# The longest words, for they are the least likely to come by themselves; every fifth line forbids what comes by itself.
run --input "$sample" >beam
awk -v q='"' -v plain=beam '
  function join(a, n,    i, s) { for (i = 1; i <= n; ++i) s = s (i > 1 ? ", " : "") q a[i] q; return s }
  {
    getline own <plain
    sub(/[.!?]+$/, ""); gsub(/,/, ""); n = split($0, w, " "); m = split(own, o, /[ ,.!?]+/)
    i = n < 3 ? 1 : int(n / 2) + 1
    if (NR % 5 == 1) { print "{\"all\": [" q w[i] q "]}"; print NR "\tall\t" w[i] >"demands" }
    if (NR % 5 == 2) { a[1] = w[n]; a[2] = w[i]; print "{\"all\": [" join(a, i == n ? 1 : 2) "]}"
      print NR "\tall\t" w[n] >"demands"; print NR "\tall\t" w[i] >"demands" }
    if (NR % 5 == 3) { p = i < n ? w[i] " " w[i + 1] : w[i]; print "{\"ordered\": [" q w[1] q ", " q p q "]}"
      print NR "\tall\t" w[1] >"demands"; print NR "\tall\t" p >"demands" }
    if (NR % 5 == 4) { print "{\"any\": [[" q w[i] q "]], \"all\": [\"bicycle\", \"New York\"]}"
      print NR "\tall\t" w[i] >"demands"; print NR "\tall\tbicycle" >"demands"; print NR "\tall\tNew York" >"demands" }
    if (NR % 5 == 0) { print "{\"none\": [" q o[2] q ", " q o[3] q "]}"
      print NR "\tnone\t" o[2] >"demands"; print NR "\tnone\t" o[3] >"demands" }
  }' "$reference" >constraints
check 'a constraint for every line' [ "$(cut -f 1 demands | sort -u | wc -l)" -eq "$count" ]
broken demands beam >before
check 'the demands are met anyway' [ "$(wc -l <before)" -ge $((count / 2)) ]
for options in '' '--width 3' '--preset marian' '--preset sockeye' '--preset varstream' '--preset ctranslate2' \
  '--preset huggingface' '--projection clustered' '--schedule streaming --batch 7 --threads 2' '--grid-base 2' \
  '--no-repeat-ngram 2' '--prune-finished none'; do
  run $options --input "$sample" --constraints constraints --stats stats >actual 2>err
  code=$?
  check "$options: lines" [ "$(wc -l <actual)" -eq "$count" ]
  broken demands actual >missed
  reported err >told
  check "$options: unmet $(tr '\n' ' ' <missed), reported $(tr '\n' ' ' <told)" cmp -s missed told
  check "$options: exit code" [ $code -eq "$([ -s told ] && echo 1 || echo 0)" ]
  check "$options: $(wc -l <told) lines are not as demanded" [ "$(wc -l <told)" -le 1 ]
  check "$options: --stats" grep -q '"sentences": 60,' stats
  [ -n "$options" ] || cp actual all
done
run --input "$sample" --constraints constraints --batch 1 >actual 2>err
same all actual
run --schedule streaming --refill-below 1 --input "$sample" --constraints constraints >actual 2>err
same all actual

head -n 10 "$sample" >ten
head -n 10 constraints >ten_constraints
awk -F '\t' '$1 <= 10' demands >ten_demands
translate --ensemble "$model,$model" --input ten --constraints ten_constraints >actual || fail '--ensemble'
head -n 10 all >expected
same expected actual
run --n-best 3 --input ten --constraints ten_constraints >nbest || fail '--n-best'
check '--n-best: more than one' [ "$(wc -l <nbest)" -gt 15 ]
: >each
texts nbest >list
awk -F '\t' 'NR == FNR { split($0, part, " "); index_of[FNR] = part[1]; n = FNR; next }
  { for (i = 1; i <= n; ++i) if (index_of[i] == $1 - 1) print i "\t" $2 "\t" $3 }' nbest ten_demands >each
check '--n-best: all are as demanded' [ -z "$(broken each list)" ]
run --mbr chrf --input ten --constraints ten_constraints >actual || fail '--mbr'
check '--mbr' [ -z "$(broken ten_demands actual)" ]
sed 's/.*/I think/' ten >prefix
run --prefix prefix --input ten --constraints ten_constraints >actual 2>err
check '--prefix' [ "$(grep -c '^I think' actual)" -eq 10 ]
broken ten_demands actual >missed
reported err >told
same missed told
printf '{"none": ["think"]}\n' >constraints_1
head -n 1 ten | run --prefix <(echo 'I think') --constraints constraints_1 >out 2>err
check 'a prefix with what is forbidden' grep -q "constraints_1:1: 'think' is forbidden, but the prefix has it" err

report
