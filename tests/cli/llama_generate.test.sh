#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# llama_generate.test.sh LLAMA_GENERATE DRAW_LLAMA [STORIES]: the command line of llama_generate, with models that are drawn, and with
# a trained one where there is one.
# shellcheck disable=SC2016,SC2034,SC2154  # what program.sh reads and sets
program=$(realpath "$1") draw=$(realpath "$2") stories=${3:-}
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "$0")")/program.sh"

"$draw" model.gguf && "$draw" small.gguf 1 && printf 'this is no model\n' >broken.gguf || exit 1
printf 'ab c\nx y z\nq\nhello there\nabc abc abc\n' >prompts

# An installed llama.cpp does not say where its libraries find each other: a program says it for all of them.
if command -v readelf >/dev/null; then
  check 'the path of libraries holds for their libraries, too' [ "$(readelf -d "$program" | grep -c RUNPATH)" -eq 0 ]
fi

# ---- refused before any work ------------------------------------------------------------------------------------------

refused '--model is required' prompt
refused 'broken.gguf: llama.cpp cannot load it: .*magic' -m broken.gguf prompt
always=(-m model.gguf --threads 1)
refused "'best' is not one of" --search best prompt
refused '--phrase needs --search beam' --phrase a prompt
refused '--n-best needs' --n-best 2 prompt
refused '--n-best = 9: must be at most --width, 4' --search beam --n-best 9 prompt
refused '--lookup and --draft need --search greedy or sample' --search beam --lookup prompt
refused 'one of them guesses' --lookup --draft small.gguf prompt
refused 'branches = 3: needs --lookup or --draft' --branches 3 prompt
refused '--stream and --json' --stream --json prompt
refused '--min-length = 5: must be at most --max-length' --min-length 5 --max-length 4 prompt
refused '--parallel = 300: needs 300 sequences, and llama.cpp has 256 at most' --parallel 300 prompt
refused '--batch = 3: must be at least 4' --batch 3 prompt
refused 'missing: cannot be opened' --lines missing
refused 'vocabulary.eos = 500' --end 500 prompt
refused 'stops.strings\[0\]' --stop '' prompt
refused 'temperature' --search sample --temperature 0 prompt
printf 'Gr\374n\n' >latin1
refused 'latin1:1: not valid UTF-8' --lines latin1

printf 'root ::= "a"\nother ::= [a\n' >broken.gbnf
refused 'broken.gbnf: grammar, line 3, column 1: ' --grammar broken.gbnf prompt
refused '--regex: pattern, line 1, column 2: ' --regex 'a(b' prompt
refused '--grammar, --json-schema and --regex: one of them' --grammar broken.gbnf --regex a prompt
refused 'missing: cannot be opened' --json-schema missing prompt

# ---- the same tokens, however they are decoded -------------------------------------------------------------------------

always+=(--exact --max-length 40)
run --json --lines prompts >one --parallel 1
lines 5 one
for ways in '--parallel 5' '--parallel 3 --chunk 2' '--parallel 5 --split' '--lookup --block 6' '--draft small.gguf' \
  '--lookup --block 6 --branches 3' '--draft small.gguf --branches 3 --parallel 2' '--lookup --branches 2 --split' \
  '--draft model.gguf --block 3' '--parallel 2 --batch 2' '--parallel 5 --context 64 --share 0'; do
  # shellcheck disable=SC2086
  run --json --lines prompts $ways >other
  check "greedy differs: $ways" cmp -s <(grep -o '"tokens":[^]]*' one) <(grep -o '"tokens":[^]]*' other)
done
run <prompts >plain
run --stream <prompts >streamed
same plain streamed 'while it grows and at its end'
check 'a header for each' [ "$(grep -c '^== [1-5]$' plain)" -eq 5 ]
run "$(head -n 1 prompts)" >alone
check 'no header for one' [ "$(grep -c '^==' alone)" -eq 0 ]
printf 'ab c' >whole
run --file whole >file
same file alone

run --search sample --seed 7 --temperature 0.9 --top-k 20 --top-p 0.95 --min-p 0.01 --json --lines prompts --parallel 1 >one
run --search sample --seed 7 --temperature 0.9 --top-k 20 --top-p 0.95 --min-p 0.01 --json --lines prompts --draft small.gguf >other
check 'samples differ by draft' cmp -s <(grep -o '"tokens":[^]]*' one) <(grep -o '"tokens":[^]]*' other)
run --search sample --seed 8 --json --lines prompts >other
differ one other

# ---- n-best, phrases, stops, beginnings that are shared ------------------------------------------------------------------

run --search beam --width 5 --n-best 5 --json 'ab c' >beam
lines 5 beam
# Two tokens that may end each of these, and two texts: the better end of each text.
run --search beam --width 4 --n-best 4 --grammar <(printf 'root ::= "a" | "b"\n') --json 'ab c' >ends
lines 2 ends
check 'different texts' [ "$(grep -o '"text":"[^"]*"' ends | sort -u | wc -l)" -eq 2 ]
check 'best first' [ "$(grep -o '"score":[-0-9.]*' beam | cut -d : -f 2 | sort -gr | cmp - <(grep -o '"score":[-0-9.]*' beam | cut -d : -f 2) && echo same)" = same ]
run --search diverse --width 2 --groups 3 --n-best 6 --json 'ab c' >diverse
lines 6 diverse
run --search beam --width 6 --phrase 'z q' --phrase x --json 'ab c' >phrases
check 'the phrases are there' grep -q '"text":"[^"]* z q' phrases
check 'and the other' grep -q '"text":"[^"]* x' phrases

run --json 'x y z' >whole_output
word=$(sed 's/.*"text":"\([^"]*\)".*/\1/' whole_output | cut -c 10-13)
printf 'zqx\t60\n' >liked
for search in '--search greedy' '--search beam --width 3' '--search sample --seed 3'; do
  run $search --bias liked --json 'ab c' >boosted
  check "--bias $search" grep -q '"text":"[^"]*zqx.*zqx' boosted
  run $search --bias liked --bias-once --json 'ab c' >once
  check "--bias-once $search" [ "$(grep -o zqx boosted | wc -l)" -gt "$(grep -o zqx once | wc -l)" ]
done
refused '--bias-once has no effect without --bias' --bias-once prompt

# ---- n-grams of words ----------------------------------------------------------------------------------------------------

printf '\\data\\\nngram 1=5\n\n\\1-grams:\n-99\t<s>\n-9\t</s>\n-9\t<unk>\n-0.2\tzqx\n-0.4\tab\n\n\\end\\\n' >words.arpa
head -c 60 words.arpa >cut.arpa
refused '--language-weight has no effect with no --language-model' --language-weight 1 prompt
refused '--word-bonus has no effect with no --language-model' --word-bonus 1 prompt
refused "--word-bonus: 'nan' is not a number" --language-model words.arpa --word-bonus nan prompt
refused 'missing: cannot be opened' --language-model missing prompt
refused 'cut.arpa: .*line' --language-model cut.arpa prompt
run --language-model words.arpa --language-weight 0 --json --lines prompts >fused
run --json --lines prompts >plain
same plain fused 'n-grams without weight'
for search in '--search greedy' '--search beam --width 4' '--lookup' '--search sample --seed 3'; do
  # Of all words of these lengths, those of the table: what is no word costs nothing, so a form makes sure that there are some.
  run $search --language-model words.arpa --language-weight 20 --regex '[a-z]{2,3}( [a-z]{2,3}){3}' --json 'ab c ' >fused
  check "n-grams: $search: $(cat fused)" grep -q -E '"text":"(zqx|ab)( (zqx|ab)){3}"' fused
done
run --language-model words.arpa --language-weight 20 --json --lines prompts --parallel 1 >one
run --language-model words.arpa --language-weight 20 --json --lines prompts --parallel 5 --lookup >other
check 'n-grams in any batch' cmp -s <(grep -o '"tokens":[^]]*' one) <(grep -o '"tokens":[^]]*' other)
check 'the stop is a text' [ ${#word} -eq 4 ]
run --stop "$word" --json 'x y z' >stopped
check 'says which stop' grep -q -F "\"stop\":\"$word\"" stopped
check 'does not show it' [ "$(grep -c -F "$word" <(sed 's/.*"text":"\([^"]*\)".*/\1/' stopped))" -eq 0 ]
check 'the rest is as without' grep -q -F "$(sed 's/.*"text":"\([^"]*\)".*/\1/' stopped)" whole_output

run --system 'a long text that stands before every one of them ' --lines prompts --statistics --json >one 2>statistics --parallel 1
run --system 'a long text that stands before every one of them ' --lines prompts --share 0 --json >other --parallel 1
check 'what is shared is not fed' grep -q -E ' [1-9][0-9]* not fed since they were shared' statistics
check 'and changes nothing' cmp -s <(grep -o '"tokens":[^]]*' one) <(grep -o '"tokens":[^]]*' other)

# ---- outputs that obey ---------------------------------------------------------------------------------------------------

printf 'root ::= word (" " word)* "."?\nword ::= [aeiou]{3} [xyz]+\n' >words.gbnf
for search in '' '--search beam --width 5 --n-best 5' '--search sample --seed 3 --n-best 3' '--search diverse --n-best 4' \
  '--lookup --block 5' '--draft small.gguf' '--search beam --phrase ax'; do
  # shellcheck disable=SC2086
  run --grammar words.gbnf $search 'ab c' >words
  check "obeys: $search: $(cat words)" [ "$(grep -c -v -x -E '(\[-?[0-9.]+\] )?[aeiou]{3}[xyz]+( [aeiou]{3}[xyz]+)*' words)" -eq 0 ]
  check "says something: $search" [ -s words ]
done
run --regex '[ab]{50}' 'ab c' >out 2>err
check 'exit code of what does not fit' [ $? -eq 1 ]
check 'says so' grep -q -e '--max-length = 40: the grammar needs 50 tokens more' err

refused '--white-space has no effect without --json-schema' --white-space 0 prompt

# ---- chat -----------------------------------------------------------------------------------------------------------------

refused '--chat and --special' --chat --special prompt
refused 'the model.s file has no chat template' --chat prompt
"$draw" chat.gguf 2 1 monarch
"$program" -m chat.gguf --threads 1 --exact --json --system 'x y' --chat --lines prompts >one
while read -r line; do
  "$program" -m chat.gguf --threads 1 --exact --json --special $'system\nx y</s>\n<s>user\n'"$line"$'</s>\n<s>assistant\n'
done <prompts >other
check 'chat' cmp -s <(grep -o '"tokens":[^]]*' one) <(grep -o '"tokens":[^]]*' other)

# ---- one that cannot be answered does not keep the others ----------------------------------------------------------------

{ head -c 2000 /dev/zero | tr '\0' a; printf '\nab c\n'; } >long
run --context 256 --lines long >out 2>err
check 'exit code' [ $? -eq 1 ]
check 'says who' grep -q '^llama_generate: prompt 1: ' err
check 'answers the other' grep -q '^== 2$' out

# ---- a trained model -----------------------------------------------------------------------------------------------------

[ -n "$stories" ] || echo "not tried: a trained model, which lies beside the repository"
if [ -n "$stories" ]; then
  always=(-m "$stories" --threads 1 --exact --end 1)
  run 'Once upon a time' --stop '.' >out
  check 'a story begins as stories do' [ "$(cat out)" = ', there was a little girl named Lily' ]
  printf '{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"]}' >schema
  run 'Once upon a time' --json-schema schema >out # where 128 tokens do not have to be enough
  check "JSON with white space: $(cat out)" python3 -c 'import json; assert list(json.load(open("out")))[:2] == ["name", "age"]'
  run 'Once upon a time' --json-schema schema --white-space 0 --json-characters 3 >out
  check "compact and short: $(cat out)" grep -q -E '^\{"name":"[^"]{0,3}","age":-?[0-9]{1,15}' out
  run 'Once</s>a' >out 2>err
  check "a name of a control token: $(cat err)" grep -q 'prompt 1 has names of control tokens' err
  run --special 'Once</s>a' >out 2>err
  check 'not with --special' [ "$(grep -c 'names of control' err)" -eq 0 ]
  run 'Once upon a time' --search beam --width 8 --phrase 'red ball' --max-length 40 >out
  check 'with a red ball' grep -q 'red ball' out
fi
report
