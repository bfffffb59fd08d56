#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build_ngram.test.sh BUILD_NGRAM MODEL SAMPLE: the command line of build_ngram.
# shellcheck disable=SC2034,SC2086,SC2154  # options are split on purpose; what program.sh reads and sets
program=$(realpath "$1") model=$(realpath "$2") sample=$(realpath "$3")
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "$0")")/program.sh"
unborn=(new.ng new.ng.part)

# does ARGUMENTS...: exit code 0, a report in the file out.
does() {
  if "$program" "$@" >out 2>err && [ ! -s err ]; then pass
  else fail "build_ngram $*: $(cat out err)"; fi
}

for i in 1 2 3 4 5 6 7 8 9; do for j in 1 2 3 4; do echo "a b$i c$((i * j % 7)) a d$((i + j)) b$((j * j % 9))"; done; done >text
printf 'a b1\na </s> b\n' >marked
printf 'Gr\374n\n' >latin1
printf 'a b\n' >few
: >nothing
spm=$model/spm.model

# ---- refused ----------------------------------------------------------------------------------------------------------

refused 'one of --text or --arpa, --check, and --in with --score is required'
refused 'one of --text or --arpa, --check' --text text --out new.ng --check text
refused 'one of --text and --arpa is required' --text text --arpa text --out new.ng
refused 'one of --text and --arpa is required' --out new.ng
refused '--out or --out-arpa is required' --text text
refused '--tokenizer has no effect with --arpa' --arpa text --tokenizer "$spm" --out new.ng
refused '--order and --fallback have no effect with --arpa' --arpa text --order 2 --out new.ng
refused '--unknown has no effect with --text' --text text --unknown -3 --out new.ng
refused '--quantise have no effect without' --check text --quantise
refused '--in and --score go together' --in text
refused "--order: '17' is not a number from 1 to 16" --text text --out new.ng --order 17
refused "--unknown: '1' is not a number <= 0" --arpa text --out new.ng --unknown 1
for flag in --text --order --tokenizer --arpa --unknown --out --out-arpa --check --in --score; do refused "$flag" $flag; done

refused 'absent: cannot be opened' --text absent --out new.ng
refused 'nothing: has no sentences' --text nothing --out new.ng
refused 'latin1:1: not valid UTF-8' --text latin1 --out new.ng
refused 'marked:2: sluice: sentence = </s>: stands at its ends only' --text marked --out new.ng
refused '1-grams give no discounts' --text few --out new.ng
refused 'text: arpa: line 36: the file ends before .data.: it is cut off' --arpa text --out new.ng
refused 'text: n-grams: this is no table of n-grams' --check text
refused 'absent: cannot be opened' --check absent
refused 'nowhere/new.ng: cannot be written' --text text --fallback --out nowhere/new.ng

# ---- what it does -----------------------------------------------------------------------------------------------------

does --text text --fallback --out a.ng --out-arpa a.arpa
says '^sentences: 36$'
says '^1-grams: [0-9]+$'
says "^bytes: $(wc -c <a.ng)$"
does --check a.ng
says "^bytes: $(wc -c <a.ng)$"
does --in a.ng --score text
says '^sentences: 36, words and ends: 252, unknown: 0$'
cp out whole
does --in a.ng --score few
says '^sentences: 1, words and ends: 3, unknown: 1$'

# ARPA, plain and compressed, gives the same table; what is cut is refused.
does --arpa a.arpa --out b.ng
does --in b.ng --score text
check 'perplexity from ARPA' [ "$(tail -n 1 out | cut -c 1-16)" = "$(tail -n 1 whole | cut -c 1-16)" ]
gzip -c a.arpa >a.arpa.gz
does --arpa a.arpa.gz --out c.ng
same b.ng c.ng
head -n -5 a.arpa >cut.arpa
refused 'cut.arpa: arpa: line [0-9]*: the file ends before .end.: it is cut off' --arpa cut.arpa --out new.ng
head -c 200 a.arpa.gz >cut.arpa.gz
refused 'cut.arpa.gz: ' --arpa cut.arpa.gz --out new.ng
grep -v '<unk>' a.arpa | awk -F= '/^ngram 1=/ { print "ngram 1=" $2 - 1; next } { print }' >known.arpa
refused 'known.arpa: arpa: .1-grams: has no <unk>' --arpa known.arpa --out new.ng
does --arpa known.arpa --unknown -4 --out d.ng
head -c 300 a.ng >cut.ng
refused 'cut.ng: n-grams: cut off after 300 bytes' --in cut.ng --score text

does --arpa a.arpa --quantise --out q.ng
says ', quantised$'
does --text "$sample" --tokenizer "$spm" --order 2 --fallback --out t.ng
does --in t.ng --score "$sample" --tokenizer "$spm"
says "^sentences: $(wc -l <"$sample"), "

check '--help' grep -q -- '--out-arpa FILE' <("$program" --help)
check '--version' grep -q '^build_ngram (sluice [0-9.]*)$' <("$program" --version)

report
