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
for flag in --search --beam --steps --n-best --lexicon --ngram --ngram-weight --ngram-bonus --bias --regex --trace --frames; do
  refused "$flag" $date $flag
done
for flag in --beam --n-best; do
  for value in 0 -3 many 2.5 10001; do refused "$flag: '$value' is not a number from 1 to 10000" $date $flag $value; done
done
refused "--search: 'deep' is not one of beam, best-path, exact, rnnt-beam, rnnt-greedy" $date --search deep
refused "--steps: '0' is not a number from 1 to 1000000000" $date --search exact --steps 0
refused "--ngram-weight: '-1' is not a number from 0 to 1000" $date --ngram x --ngram-weight -1
refused "--ngram-bonus: 'nan' is not a number from -1000 to 1000" $date --ngram x --ngram-bonus nan
refused '--ngram-weight and --ngram-bonus have no effect without --ngram' $date --ngram-bonus 1
for search in best-path exact rnnt-greedy; do
  for flag in --lexicon --ngram --bias --regex; do
    refused "--lexicon, --ngram, --bias and --regex need --search beam or rnnt-beam, not $search" $date --search $search $flag a
  done
done
for search in best-path rnnt-greedy; do
  refused "--beam has no effect with --search $search" $date --search $search --beam 4
  refused "--n-best: 2: --search $search finds one text" $date --search $search --n-best 2
done
for search in best-path exact; do
  refused "--trace has no effect with --search $search" $date --search $search --trace new
done
for search in best-path beam rnnt-greedy rnnt-beam; do
  refused "--steps has no effect with --search $search" $date --search $search --steps 9
done
refused '--n-best: 11: the beam has 10' $date --search rnnt-beam --n-best 11
refused '--n-best: 33: the beam has 32' $date --n-best 33
refused '--regex: ' $date --regex '(['

refused 'absent.png: no such file' absent.png
refused 'absent: no such folder' $date --frames absent
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
cp "$folder/model/model.safetensors" empty
refused 'empty/rnnt.safetensors: no such file' --model empty $date --search rnnt-beam
cp "$folder/model/model.safetensors" empty/rnnt.safetensors
refused "empty/rnnt.safetensors: tensor 'embedding.weight' is missing" --model empty $date --search rnnt-greedy
always=(--model "$folder/model")

# ---- what it does -----------------------------------------------------------------------------------------------------

for search in best-path beam exact rnnt-greedy rnnt-beam; do reads 12.03.1984 $date --search $search; done
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
run $samples/6-worn.png >beam
if run $samples/6-worn.png --search exact --steps 20 >exact 2>err; then fail 'a proof of 20 steps'; fi
same exact beam 'without a proof the best text known'
check 'what is not proved' grep -q '6-worn.png: not proved in 20 steps: this text has -[0-9.]*, another one -[0-9.]* at most$' err
run $date --search rnnt-beam --n-best 3 --regex '[0-9]{2}\.[0-9]{2}\.[0-9]{4}' >out
check 'dates of a transducer' [ "$(grep -c -P '^-[0-9.]+\t[0-9]{2}\.[0-9]{2}\.[0-9]{4}$' out)" -eq 3 ]
check 'the best is the date' grep -q -P '\t12\.03\.1984$' <(head -1 out)
printf 'Received\nfrom\nFernwald\nEUR\nDr\n' >words
check 'without words' [ "$(run $samples/5-worn.png)" != 'Received from Dr Fernwald: EUR 1204.50' ]
check 'words of a lexicon' grep -q '^Received from Dr Fernwald: EUR ' <(run $samples/5-worn.png --lexicon words)
printf 'Fernwald\t8\n' >names
check 'a boosted name' grep -q 'Dr Fernwald:' <(run $samples/5-worn.png --bias names)
check 'a boosted name of a transducer' grep -q 'Dr Fernwald:' <(run $samples/5-worn.png --search rnnt-beam --bias names)
run $date --trace trace.html >out
check 'a page' grep -q '</html>' trace.html
run $date --trace trace.jsonl >out
check 'lines' [ "$(wc -l <trace.jsonl)" -gt 2 ]
for search in rnnt-greedy rnnt-beam; do
  run $date --search $search --trace $search.jsonl >out
  check "lines of $search" [ "$(wc -l <$search.jsonl)" -gt 20 ]
done

mkdir kept
run $date $samples/5-worn.png --n-best 2 >out
for time in first second; do
  run $date $samples/5-worn.png --n-best 2 --frames kept >again
  same again out "frames that are kept, the $time time"
done
check 'a file for each picture' [ "$(find kept -name '*.frames' | wc -l)" -eq 2 ]
for file in kept/*; do printf x >>"$file"; done
run $date $samples/5-worn.png --n-best 2 --frames kept >again
same again out 'files of a wrong length'

check '--help' grep -q -- '--regex RE' <("$program" --help)
check '--version' grep -q '^read_line (sluice [0-9.]*)$' <("$program" --version)

report
