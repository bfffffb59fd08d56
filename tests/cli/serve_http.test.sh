#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# serve_http.test.sh SERVE_HTTP TRANSLATE MODEL SAMPLE BUILD_NGRAM WATERMARK: what translate says, over HTTP; whatever clients do, nobody is answered
# twice or not at all.
program=$(realpath "$1") translate=$(realpath "$2") model=$(realpath "$3") sample=$(realpath "$4") build=$(realpath "$5")
watermark=$(realpath "$6")
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/cli/program.sh
. "$here/program.sh"
# shellcheck source=tests/cli/server.sh
. "$here/server.sh"
clients=$here/serve_http.py
always=(--model "$model")

head -n 8 "$sample" >in

# ---- the same as translate ----
start --proposer heads --max-sentences 200
fusing=()
equal() { # equal OPTIONS FLAG...
  "$translate" --model "$model" --input in --n-best 3 "${fusing[@]}" "${@:2}" | awk -F ' [|][|][|] ' '{ print $2 " ||| " $3 }' >expected
  client ask "$1" <in >out
  check "$1: answered" [ $? -eq 0 ]
  same out expected "$1"
}
equal '{"n_best": 3}'
equal '{"n_best": 3, "width": 4, "preset": "marian", "length_penalty": 0.6, "max_length": 20}' --width 4 --preset marian \
  --length-penalty 0.6 --max-length 20
equal '{"n_best": 3, "search": "sample", "top_p": 0.9, "seed": 7, "temperature": 0.8}' --search sample --top-p 0.9 --seed 7 \
  --temperature 0.8
echo lost >forbidden
equal '{"n_best": 3, "no_repeat_ngram": 2, "repetition_penalty": 1.2, "forbid": ["lost"]}' --no-repeat-ngram 2 \
  --repetition-penalty 1.2 --forbid forbidden
printf 'lost\t2.5\nbanana\n' >liked
equal '{"n_best": 3, "bias": [{"phrase": "lost", "boost": 2.5}, {"phrase": "banana", "per_token": 1}]}' --bias liked
equal '{"n_best": 3, "bias": [{"phrase": "lost", "boost": 2.5}, {"phrase": "banana"}], "bias_once": true}' --bias liked --bias-once
for _ in $(seq 8); do echo '{"any": [["today", "tomorrow"]], "none": ["the"]}'; done >demands
printf 'Handy\tcell phone\nHandy\tmobile\nBahnhof\trailway station\n' >terms
equal '{"n_best": 3, "constraints": {"any": [["today", "tomorrow"]], "none": ["the"]},
  "glossary": {"Handy": ["cell phone", "mobile"], "Bahnhof": "railway station"}}' --constraints demands --glossary terms
sed 's/.*/I/' in >prefixes
equal '{"n_best": 3, "prefix": "I"}' --prefix prefixes
for search in greedy blockwise; do
  "$translate" --model "$model" --input in --search greedy >expected
  client ask '{"search": "'$search'"}' <in | sed 's/ ||| .*//' >out
  same out expected "$search"
done
"$translate" --model "$model" --input in --mbr chrf >expected
client ask '{"mbr": "chrf"}' <in | sed 's/ ||| .*//' | awk 'NR % 5 == 1' >out
same out expected mbr
"$translate" --model "$model" --input in >expected
client stream '{}' <in >out
check 'a stream: settled text' [ $? -eq 0 ]
same out expected 'a stream'

# ---- OpenAI's shape ----
first=$(head -n 1 in) answer=$(head -n 1 expected)
ask /v1/completions '{"prompt": "'"$first"'", "model": "sluice"}' >out
says '"object":"text_completion"' && says '"finish_reason":"stop"' && says '"total_tokens":[0-9]'
check 'the beam answers' grep -q -F "\"text\":\"$answer\"" out
ask /v1/completions '{"prompt": "'"$first"'", "temperature": 0, "logprobs": 0, "max_tokens": 2}' >out
says '"finish_reason":"length"' && says '"token_logprobs":\[-'
ask /v1/completions '{"prompt": "Danke.", "temperature": 0, "logprobs": 0}' >out
says '"text_offset":\[0,6,7\]' && says '"tokens":\["Thanks","\.",""\]'
head -n 3 in >three
check 'top_logprobs' client logprobs <three
check 'traces' client trace <three
ask /v1/completions '{"prompt": " ", "temperature": 0}' >out
says '"finish_reason":"stop".*"text":""'
ask /translate '{"text": ["", "Danke."]}' >out
check 'an empty sentence' grep -q -F '"hypotheses":[],"index":0,"source_tokens":0,"text":""' out
ask /translate '{"text": "Danke.", "prefix": "a b c d e f", "max_length": 3}' >out -w '%{http_code}'
says '"error":\{"code":400,"message":"bad_request: .*prefix'
says '^400$'
ask /v1/completions '{"prompt": ["Danke.", "Guten Morgen!"], "n": 2, "temperature": 1, "seed": 3}' >out
check 'two of each' [ "$(grep -o '"index":[0-3]' out | sort -u | wc -l)" -eq 4 ]
ask /v1/completions '{"prompt": "'"$first"'", "stream": true, "stream_options": {"include_usage": true}}' >out
check 'the stream of chunks' [ "$(sed -n 's/.*"text":"\([^"]*\)".*/\1/p' out | tr -d '\n')" = "$answer" ]
check 'DONE comes last' [ "$(tail -n 2 out | head -n 1)" = 'data: [DONE]' ]
says '"usage":\{'
word=$(printf %s "$answer" | cut -d ' ' -f 3)
ask /v1/completions '{"prompt": "'"$first"'", "stop": " '"$word"'"}' >out
check "stops before $word: $(cat out)" grep -q -F "\"text\":\"$(printf %s "$answer" | cut -d ' ' -f 1-2)\"" out
ask /v1/models '' -G >out
says '"id":"sluice"'

# ---- what browsers are told ----
curl -s -D headers "$(url /)" >out
says '<title>sluice'
for header in "content-security-policy: default-src 'none'; script-src 'nonce-" 'x-content-type-options: nosniff' 'x-frame-options: deny'; do
  check "header $header" grep -q -i -F "$header" headers
done
check 'nobody else is let in' [ "$(grep -c -i 'access-control' headers)" -eq 0 ]
check 'a nonce is used once' [ "$(curl -s "$(url /)" | grep -c -F -f <(grep -o 'nonce-[0-9a-f]*' headers | head -n 1 | cut -d - -f 2))" -eq 0 ]
check 'nothing from outside' [ "$(grep -c -E '(src|href)="?(https?:)?//' out)" -eq 0 ]
check health [ "$(curl -s "$(url /health)")" = '{"sentences_open":0,"status":"ok"}' ]
curl -s "$(url /metrics)" >out
says '^sluice_sentences_total\{failure="none"\} [1-9]' && says '^sluice_step_rows_bucket\{le="8"\} [1-9]'
says '^sluice_http_request_seconds_bucket\{path="/translate",le="\+Inf"\} [1-9]'
check 'metrics without a type' [ "$(grep -c -v -E '^(# (HELP|TYPE) |[a-z_]+(\{[^}]*\})? [0-9.e+-]+$)' out)" -eq 0 ]

# ---- many, and the end ----
check 'a storm' client storm expected <in
client farewell "$pid" expected <in
check 'a farewell' [ $? -eq 0 ]
wait "$pid"
check 'exit code after SIGTERM' [ $? -eq 0 ]

# ---- with n-grams ----
for i in 1 2 3 4 5 6 7; do for j in 1 2 3; do echo "The cat number $i is $j years old, I think."; done; done >text
"$build" --text text --tokenizer "$model/spm.model" --order 3 --fallback --out pieces.ng >out || fail "build_ngram: $(cat out)"
fusing=(--language-model pieces.ng --language-weight 0.6 --word-bonus 0.25)
start "${fusing[@]}" --proposer ngram
equal '{"n_best": 3}'
equal '{"n_best": 3, "search": "sample", "top_p": 0.9, "seed": 7, "temperature": 0.8}' --search sample --top-p 0.9 --seed 7 \
  --temperature 0.8
"$translate" --model "$model" --input in --search greedy "${fusing[@]}" >expected
"$translate" --model "$model" --input in --search greedy >plain
check 'n-grams change translations' [ "$(cmp -s expected plain && echo same)" = '' ]
for search in greedy blockwise; do
  client ask '{"search": "'$search'"}' <in | sed 's/ ||| .*//' >out
  same out expected "$search with n-grams"
done
check 'traces with n-grams' client trace <three
stop

# ---- marks ----
fusing=()
key=0x1fedcba987654321 decimal=2300718913637663521
echo "$key # ours" >key
"$translate" --model "$model" --input in --search sample --seed 7 >plain
start --watermark-key key --watermark-second 0.3
equal '{"n_best": 3, "search": "sample", "seed": 7}' --search sample --seed 7 --watermark-key key --watermark-second 0.3
"$translate" --model "$model" --input in --search sample --seed 7 --watermark-key key --watermark-second 0.3 >out
differ plain out
check 'gumbel with two keys' client marks "$watermark" key gumbel --second 0.3
cat log err >logs
ask /detect '{"text": "a b c", "window": 2, "return_token_ids": true}' >>logs
ask /translate '{"text": "a"}' >>logs
curl -s "$(url /metrics)" >>logs
ask /trace '{"text": "Danke.", "search": "sample"}' >>logs
stop
check 'the key is told to nobody' [ "$(grep -c -i -E "${key#0x}|$decimal" logs)" = 0 ]
start --watermark-key key --watermark synthid --watermark-depth 20
check 'synthid' client marks "$watermark" key synthid --depth 20
stop
start --watermark-key key --watermark red_green --watermark-delta 5 --watermark-gamma 0.5 --proposer ngram
for search in greedy beam sample; do
  "$translate" --model "$model" --input in --search $search --watermark-key key --watermark red_green --watermark-delta 5 \
    --watermark-gamma 0.5 >expected
  client ask '{"search": "'$search'"}' <in | sed 's/ ||| .*//' >out
  same out expected "green $search"
  differ plain out
done
"$translate" --model "$model" --input in --search blockwise --proposer ngram --watermark-key key --watermark red_green \
  --watermark-delta 5 --watermark-gamma 0.5 >expected
client ask '{"search": "blockwise"}' <in | sed 's/ ||| .*//' >out
same out expected 'green blocks'
client ask '{"search": "greedy"}' <in | sed 's/ ||| .*//' >out
same out expected 'green blocks, as greedy'
check 'relaxed blocks' [ "$(ask /translate '{"text": "a", "search": "blockwise", "accept_top": 2}' -o /dev/null -w '%{http_code}')" = 400 ]
check 'red_green' client marks "$watermark" key red_green --gamma 0.5
stop
for policy in always default requested; do
  start --watermark-key key --watermark-policy $policy
  check "policy $policy" client policies $policy
  stop
done

# ---- what is remembered ----
start --remember-memory 1
check 'remembers' client remembers
stop
start --remember earlier
client ask '{"search": "blockwise"}' <in | sed 's/ ||| .*//' >out
"$translate" --model "$model" --input in --search greedy >expected
same out expected 'remembering'
ask /translate '{"text": "Der alte Mann hat seinen Hut im Garten verloren, weil der Wind sehr stark war."}' >/dev/null
ask /translate '{"text": "Der alte Mann hat seinen Hut im Garten verloren, weil der Wind sehr stark war.", "search": "greedy"}' >/dev/null
stop
check 'the end, remembering' [ $? -eq 0 ]
check 'a file is left' [ -s earlier ]
start --remember earlier --remember-memory 2
check 'what an earlier run said' client kept
stop

# ---- what makes no sense ----
start
check 'neither key nor memory' client policies none
check 'bodies' client bodies
stop
check 'exit code, idle' [ $? -eq 0 ]
start --patience 1 --max-body 10000
check 'wire' client wire
stop
start --size 1 --queue 1
check 'full' client full
stop
printf 'secret\n' >token
start --token-file token
check 'no token for a trace' [ "$(ask /trace '{"text": "a"}' -o /dev/null -w '%{http_code}')" = 401 ]
check 'no token' [ "$(code "$(url /metrics)")" = 401 ]
check 'another token' [ "$(code -H 'Authorization: Bearer secres' "$(url /metrics)")" = 401 ]
check 'part of a token' [ "$(code -H 'Authorization: Bearer secretsecret' "$(url /metrics)")" = 401 ]
check 'the token' [ "$(code -H 'Authorization: Bearer secret' "$(url /metrics)")" = 200 ]
check 'health needs none' [ "$(code "$(url /health)")" = 200 ]
always=()
echo word >broken
for option in '--watermark-key nowhere' '--watermark-key broken' '--watermark gumbel' '--watermark-policy always' '--watermark-key key --watermark best' \
  '--watermark-key key --watermark sbw' '--watermark-key key --watermark-second 2' '--watermark-key key --watermark-policy often' \
  '--remember broken' '--remember nowhere/at/all' '--remember-memory 0' '--language-model nowhere' '--language-model text' '--language-model pieces.ng --proposer heads' '--word-bonus 1' \
  '--language-weight 1' '--language-model pieces.ng --language-weight inf' '--port x' '--port 70000' '--size 0' '--frobnicate' '--token-file nowhere' '--model nowhere'; do
  # shellcheck disable=SC2086  # option and value
  timeout 20 "$program" --model "$model" $option >out 2>err
  check "$option: exit code" [ $? -eq 2 ]
done
"$program" --model "$model" --port "$port" >out 2>err
check 'a port that is taken' [ $? -eq 1 ]
check 'its message' grep -q -F "port $port" err
stop

report
