#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# read_line.test.sh READ_LINE FOLDER: the command line of read_line.
# shellcheck disable=SC2016,SC2034,SC2086,SC2154  # options are split on purpose; what program.sh reads and sets
program=$(realpath "$1") folder=$(realpath "$2")
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "$0")")/program.sh"
unborn=(new)
always=(--model "$folder/model")
samples=$folder/samples
date=$samples/4-fax.png

# reads TEXT ARGUMENTS...: exit code 0, and this output.
reads() {
  local expected=$1
  shift
  if run "$@" >out 2>err && [ ! -s err ] && [ "$(cat out)" = "$expected" ]; then pass
  else fail "read_line $*: $(cat out err)"; fi
}

# ---- refused before any work ------------------------------------------------------------------------------------------

refused 'picture is required'
refused '--frobnicate' --frobnicate $date
for flag in --search --beam --n-best --lexicon --ngram --ngram-weight --ngram-bonus --bias --regex --trace; do
  refused "$flag" $date $flag
done
for flag in --beam --n-best; do
  for value in 0 -3 many 2.5 10001; do refused "$flag: '$value' is not a number from 1 to 10000" $date $flag $value; done
done
refused "--search: 'deep' is not one of beam, best-path, exact" $date --search deep
refused "--ngram-weight: '-1' is not a number from 0 to 1000" $date --ngram x --ngram-weight -1
refused "--ngram-bonus: 'nan' is not a number from -1000 to 1000" $date --ngram x --ngram-bonus nan
refused '--ngram-weight and --ngram-bonus have no effect without --ngram' $date --ngram-bonus 1
refused '--regex need --search beam, not exact' $date --search exact --regex a
refused '--trace have no effect with --search best-path' $date --search best-path --trace new
refused '--n-best: 2: --search best-path finds one text' $date --search best-path --n-best 2
refused '--n-best: 33: the beam has 32' $date --n-best 33
refused '--regex: ' $date --regex '(['

refused 'absent.png: no such file' absent.png
printf 'this is no picture\n' >bad.png && refused 'bad.png: is no PNG: ' bad.png
head -c 900 $date >bad.png && refused 'bad.png: is no PNG: ' bad.png
for flag in --lexicon --ngram --bias; do refused 'absent: cannot be opened' $date $flag absent; done
printf 'fine\nhouse 5\n' >words && refused "words:2: 'house 5': ' ' is no letter that this model reads" $date --lexicon words
printf '\n' >words && refused 'words: holds no word' $date --lexicon words
printf 'no table at all\n' >bad && refused 'bad: ' $date --ngram bad
printf '\\data\\\nngram 1=0\n' >bad && refused 'bad: ' $date --ngram bad
printf 'Ω\t3\n' >bad && refused "bad:1: 'Ω' cannot be spelt" $date --bias bad
mkdir empty
always=()
refused 'empty/model.safetensors: no such file' --model empty $date
printf 'this is no model\n' >empty/model.safetensors
refused 'empty/model.safetensors: ' --model empty $date
always=(--model "$folder/model")

# ---- what it does -----------------------------------------------------------------------------------------------------

for search in best-path beam exact; do reads 12.03.1984 $date --search $search; done
reads 'Frau Käthe Großmann, Lindenstraße 14
Rechnung Nr. 48-2213 vom 12.03.1984' $samples/7-scan.png $samples/2-scan.png
run $date --n-best 3 --regex '[0-9]{2}\.[0-9]{2}\.[0-9]{4}' >out
lines 3 out
check 'the best is the date' grep -q -P '^-[0-9.]+\t12\.03\.1984$' out
check 'all match' [ "$(grep -c -P '\t[0-9]{2}\.[0-9]{2}\.[0-9]{4}$' out)" -eq 3 ]
run $date --regex '[0-9]{2}/[0-9]{4}' >out
check 'a pattern decides' grep -q -x '[0-9][0-9]/[0-9]\{4\}' out
run $date --search exact --n-best 2 >exact
run $date --beam 200 --n-best 2 >beam
same exact beam 'the exact search and a wide beam'
printf 'Received\nfrom\nFernwald\nEUR\nDr\n' >words
check 'without words' [ "$(run $samples/5-worn.png)" != 'Received from Dr Fernwald: EUR 1204.50' ]
check 'words of a lexicon' grep -q '^Received from Dr Fernwald: EUR ' <(run $samples/5-worn.png --lexicon words)
printf 'Fernwald\t8\n' >names
check 'a boosted name' grep -q 'Dr Fernwald:' <(run $samples/5-worn.png --bias names)
run $date --trace trace.html >out
check 'a page' grep -q '</html>' trace.html
run $date --trace trace.jsonl >out
check 'lines' [ "$(wc -l <trace.jsonl)" -gt 2 ]

check '--help' grep -q -- '--regex RE' <("$program" --help)
check '--version' grep -q '^read_line (sluice [0-9.]*)$' <("$program" --version)

report
