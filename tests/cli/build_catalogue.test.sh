#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build_catalogue.test.sh BUILD_CATALOGUE MODEL SAMPLE: the command line of build_catalogue.
# shellcheck disable=SC2034,SC2086,SC2154  # options are split on purpose; what program.sh reads and sets
program=$(realpath "$1") model=$(realpath "$2") sample=$(realpath "$3")
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "$0")")/program.sh"
unborn=(new.cat new.cat.part)

# does ARGUMENTS...: exit code 0, a report in the file out.
does() {
  if "$program" "$@" >out 2>err && [ ! -s err ]; then pass
  else fail "build_catalogue $*: $(cat out err)"; fi
}

printf '9 9\n3 4 5\n3 4\n3 7 1\n12\n' >few
printf '3 4\n9 9\n3 4\n' >twice
printf '3 4\n\n5\n' >gap
printf '3 4\n5 x\n' >letters
printf '3 4\n5 -6\n' >negative
printf 'Gr\374n\n' >latin1
: >nothing
spm=$model/spm.model

# ---- refused ----------------------------------------------------------------------------------------------------------

refused 'one of --tokens or --text, --check, and --in with --look is required'
refused 'one of --tokens or --text, --check' --tokens few --out new.cat --check few
refused 'one of --tokens and --text is required' --tokens few --text few --tokenizer "$spm" --out new.cat
refused 'one of --tokens and --text is required' --out new.cat
refused '--out is required' --tokens few
refused '--text needs --tokenizer' --text few --out new.cat
refused '--tokenizer has no effect with --tokens' --tokens few --tokenizer "$spm" --out new.cat
refused '--numbers has no effect' --check few --numbers x
refused '--tokenizer has no effect with --check' --check few --tokenizer "$spm"
refused '--in and --look go together' --in few
refused '--most has no effect without --look' --check few --most 3
refused "--most: '0' is not a number from 1 on" --in few --look "" --most 0
refused "--duplicates: 'drop' is not one of refuse, count" --tokens few --out new.cat --duplicates drop
refused '--frobnicate' --frobnicate
for flag in --tokens --text --tokenizer --out --numbers --duplicates --check --in --look --most; do refused "$flag" $flag; done

refused 'absent: cannot be opened' --tokens absent --out new.cat
refused 'nothing: has no items' --tokens nothing --out new.cat
refused 'gap:2: has no tokens' --tokens gap --out new.cat
refused "letters:2: '5 x' is not token numbers" --tokens letters --out new.cat
refused "negative:2: '5 -6' is not token numbers" --tokens negative --out new.cat
refused 'latin1:1: not valid UTF-8' --text latin1 --tokenizer "$spm" --out new.cat
refused 'sequence 2 = that of sequence 0: is there twice' --tokens twice --out new.cat
refused 'few: catalogue: this is no catalogue' --check few
refused 'absent: cannot be opened' --check absent
refused 'nowhere/new.cat: cannot be written' --tokens few --out nowhere/new.cat

# ---- what it does -----------------------------------------------------------------------------------------------------

does --tokens few --out a.cat --numbers numbers
says '^lines: 5, 0 there already$'
says '^items: 5, of 1 to 3 tokens, the largest 12$'
says '^nodes: 8$'
says "^bytes: $(wc -c <a.cat), "
check 'numbers of the lines' [ "$(tr '\n' ' ' <numbers)" = '3 1 0 2 4 ' ]
does --check a.cat
says '^items: 5, of 1 to 3 tokens, the largest 12$'
does --in a.cat --look ''
check 'all items' [ "$(sed 1d out | tr '\t\n' ':,')" = '0:3 4,1:3 4 5,2:3 7 1,3:9 9,4:12,' ]
says '^items: 5, 3 tokens may follow$'
does --in a.cat --look '3 4' --most 1
says '^items: 2, 1 tokens may follow, or the end$'
lines 2 out
does --in a.cat --look '4'
says '^items: 0, 0 tokens may follow$'
refused "--look: 'x' is not token numbers" --in a.cat --look x

does --tokens twice --out b.cat --duplicates count --numbers numbers
says '^lines: 3, 1 there already$'
check 'both lines are one item' [ "$(tr '\n' ' ' <numbers)" = '0 1 0 ' ]
sort -R few >mixed
does --tokens mixed --out b.cat
same a.cat b.cat

# Every byte that changes is noticed; a failure leaves the old file.
cp a.cat c.cat
printf 'X' | dd of=c.cat bs=1 seek=300 conv=notrunc status=none
refused 'c.cat: catalogue: damaged: the checksum is wrong' --check c.cat
head -c 200 a.cat >cut.cat
refused 'cut.cat: catalogue: cut off after 200 bytes' --in cut.cat --look ''
"$program" --tokens twice --out a.cat >out 2>err
same a.cat b.cat

sort -u "$sample" | awk 'NF' >lines
does --text lines --tokenizer "$spm" --out t.cat
says "^lines: $(wc -l <lines), 0 there already$"
does --in t.cat --look "$(head -n 1 lines)" --tokenizer "$spm"
says '^items: [1-9]'
check 'a line is found as text' [ "$(sed -n 2p out | cut -f 2)" = "$(head -n 1 lines)" ]

check '--help' grep -q -- '--look PREFIX' <("$program" --help)
check '--version' grep -q '^build_catalogue (sluice [0-9.]*)$' <("$program" --version)

report
