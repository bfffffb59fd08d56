#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# llama_serve.test.sh SERVE_LLAMA LLAMA_GENERATE DRAW_LLAMA [STORIES]: what llama_generate says, over HTTP; with a model that is drawn,
# and with a trained one where there is one.
program=$(realpath "$1") generate=$(realpath "$2") draw=$(realpath "$3") stories=${4:-}
here=$(dirname "$(realpath "$0")")
# shellcheck source=tests/cli/program.sh
. "$here/program.sh"
# shellcheck source=tests/cli/server.sh
. "$here/server.sh"
clients=$here/llama_serve.py
"$draw" model.gguf && "$draw" chat.gguf 2 1 monarch && "$draw" json.gguf 2 1 monarch json && printf 'this is no model\n' >broken.gguf || exit 1
printf 'ab c\nx y z\nq\nhello there\nabc abc abc\n' >prompts

# ---- refused before any work ----
refused '--model is required'
refused 'broken.gguf: llama.cpp cannot load it' -m broken.gguf
always=(-m model.gguf --threads 1)
refused '--batch = 3: must be at least --sequences, 64' --batch 3
refused 'sequences' --sequences 300
refused 'vocabulary.eos = 500' --end 500
refused 'nowhere: cannot be opened' --token-file nowhere
refused '--tool-format: .*tool format = qwen: must be one of llama3_json, hermes' --tool-format qwen

# ---- the same as llama_generate ----
always+=(--exact)
start --name drawn
"$generate" "${always[@]}" --max-length 40 --json --lines prompts >expected
check 'greedy' client same '{"temperature": 0, "max_tokens": 40}' expected <prompts
"$generate" "${always[@]}" --max-length 20 --search beam --width 4 --n-best 4 --json --lines prompts >expected
check 'a beam' client same '{"temperature": 0, "max_tokens": 20, "n": 4}' expected <prompts
check 'streams' client streams <prompts
check 'logprobs' client logprobs <prompts
check 'samples' client samples <prompts
check 'stops' client stops <prompts
check 'grammars' client grammars <prompts
check 'many' client many <prompts
check 'beginnings that are shared' client shared
check 'whoever leaves' client leaves
check 'prompts of tokens' client tokens
check 'bodies' client bodies
ask /v1/completions '{"prompt": "once upon a time", "max_tokens": 6, "json_schema": {"enum": [true, null], "x-own": 1, "title": "t"}}' >out
says '"text":"(true|null)"'
check 'what a schema says in vain is told' grep -qxF 'serve_llama: json_schema: ignored, as it is no keyword: "x-own"' err
ask /v1/chat/completions '{"messages": [{"role": "user", "content": "a"}]}' >out
says 'has no chat template'
ask /v1/models/drawn '' -G >out
says '^\{"created":0,"id":"drawn","object":"model"'
check 'no other model' [ "$(code "$(url /v1/models/other)")" = 404 ]
ask /v1/models '' -G >out
says '"id":"drawn"'
check 'health' [ "$(curl -s "$(url /health)")" = '{"sentences_open":0,"status":"ok"}' ]
check 'there is no page' [ "$(code "$(url /)")" = 404 ]
check 'no translations' [ "$(ask /translate '{"text": "a"}' -o /dev/null -w '%{http_code}')" = 404 ]
stop
check 'exit code after SIGTERM' [ $? -eq 0 ]

# ---- n-grams of words ----
printf '\\data\\\nngram 1=5\n\n\\1-grams:\n-99\t<s>\n-9\t</s>\n-9\t<unk>\n-0.2\tzqx\n-0.4\tab\n\n\\end\\\n' >words.arpa
refused '--word-bonus has no effect with no --language-model' --word-bonus 1
refused 'nowhere: cannot be opened' --language-model nowhere
fusing=(--language-model words.arpa --language-weight 0.7 --word-bonus 0.5)
start "${fusing[@]}"
"$generate" "${always[@]}" "${fusing[@]}" --max-length 40 --json --lines prompts >expected
"$generate" "${always[@]}" --max-length 40 --json --lines prompts >plain
check 'n-grams change outputs' [ "$(cmp -s expected plain && echo same)" = '' ]
check 'greedy with n-grams' client same_texts '{"temperature": 0, "max_tokens": 40}' expected <prompts
check 'samples with n-grams' client samples <prompts
check 'many with n-grams' client many <prompts
check 'beginnings that are shared with n-grams' client shared
stop

# ---- what is remembered, and marks ----
start
client told <prompts >expected
check 'answers of many kinds' [ $? -eq 0 ]
stop
start --remember-memory 1
for round in first second; do
  client told <prompts >out
  same out expected "remembering, the $round time"
done
check 'remembers' client remembers <prompts
stop
start --remember earlier
ask /v1/completions '{"prompt": "one more", "temperature": 0, "max_tokens": 60, "regex": "[a-z ]{50,}"}' >/dev/null
stop
check 'a file is left' [ -s earlier ]
start --remember earlier
ask /v1/completions '{"prompt": "one more", "temperature": 0, "max_tokens": 60, "regex": "[a-z ]{50,}"}' >/dev/null
metric() { curl -s "$(url /metrics)" | sed -n "s/^$1 //p"; }
rounds=$(metric sluice_rounds_total) tokens=$(metric sluice_round_tokens_total)
check "what an earlier run said: $tokens tokens in $rounds rounds" [ "$tokens" -gt $((2 * rounds)) ]
stop
refused 'broken.gguf: ' --remember broken.gguf
echo 0x1fedcba987654321 >key
start --watermark-key key
check 'marks' client marks <prompts
cat log err >logs
ask /detect '{"text": "a b c"}' >>logs
check 'the key is told to nobody' [ "$(grep -c -i -E '1fedcba987654321|2300718913637663521' logs)" = 0 ]
stop
refused '--watermark has no effect without --watermark-key' --watermark synthid

# ---- chat, a part of the cells for each sequence, too little time ----
always=(-m chat.gguf --threads 1)
start --special --exact --split --sequences 8 --size 4 --context 2048
check 'chat' client chat <prompts
stop
always=(-m json.gguf --threads 1)
start --special --exact
check 'formats' client formats
check 'tools' client tools
check 'no budget without reasoning' grep -q thinking_token_budget <(ask /v1/chat/completions '{"messages": [{"role": "user", "content": "a"}], "thinking_token_budget": 1}')
stop
start --exact --reasoning-parser qwen3 --reasoning-budget 12
check 'thinks' client thinks
stop
refused '--reasoning-budget has no effect with no --reasoning-parser' --reasoning-budget 1
refused '--reasoning-parser' --reasoning-parser qwen
for format in llama3_json qwen3_coder mistral kimi_k2 glm45 openai; do
  start --exact --tool-format $format
  check "calls of $format" client calls
  stop
done
start --tool-format mistral_v11
ask /v1/chat/completions '{"messages": [{"role": "user", "content": "a"}], "tool_choice": "required", "temperature": 0, "parallel_tool_calls": false,
  "tools": [{"type": "function", "function": {"name": "halt", "parameters": {"const": {}}}}], "logprobs": true}' >out
says '"arguments":"\{ *\}","name":"halt"' # which white space the drawn model writes depends on the processor
check 'another format' [ "$(grep -o '"token":"[^"]*"' out | head -12 | cut -d'"' -f4 | tr -d '\n')" = '[TOOL_CALLS]' ]
stop
always=(-m chat.gguf --threads 1)
start --time-limit 1
check 'what was written in time' client late
stop
always=(-m model.gguf --threads 1 --exact)

# ---- chat templates ----
cat >own.jinja <<'END'
{%- for message in messages -%}
{%- if message.role == 'nobody' %}{{ raise_exception('no role ' + message.role) }}{% endif -%}
<|im_start|>{{ message.role }}{% if message.name %}[{{ message.name }}]{% endif %}{{ '\n' }}
{%- if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}{{ message.content }}<|im_end|>
{% endfor -%}
{%- if own is defined %}own={{ own }}{% endif -%}
<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think></think>
{% endif %}
END
printf '%s' "{% for one in messages %}{% for other in messages %}{% if other.content == one.role %}{% endif %}{% endfor %}{{ one.content }}{% endfor %}" >slow.jinja
printf 'no template' >text.jinja
always=(-m json.gguf --threads 1)
refused 'nowhere.jinja: cannot be read' --chat-template-file nowhere.jinja
refused '--chat-template-file: text.jinja: none: ' --chat-template-file text.jinja
start --exact
check 'which way' grep -q -F 'chat template: a form that' err
check 'built in' client built_in
stop
start --special --exact --chat-template-file own.jinja
if ! grep -q 'chat template: rendered as Jinja' err; then
  echo "not tried: chat templates in Jinja, of which no engine was found when this was built"
  check 'built in without an engine' client built_in
  stop
else
  check 'what a template is given' client own
  stop
  start --exact --reasoning-parser qwen3 --chat-template-file own.jinja
  ask /v1/chat/completions '{"messages": [{"role": "user", "content": "a"}], "temperature": 0, "response_format": {"type": "json_schema", "json_schema": {"schema":
    {"const": "x"}}}, "chat_template_kwargs": {"enable_thinking": false}}' >out
  says '"message":\{"content":"\\"x\\"","role":"assistant"\}' # with no thoughts before
  stop
  start --time-limit 1 --chat-template-file slow.jinja
  check 'many messages' client many_messages
  stop
  start --request-memory 2 --chat-template-file own.jinja
  check 'little memory' client little_memory
  stop
  "$draw" inside.gguf 2 1 "$(cat own.jinja)" json
  run_generate() { "$generate" -m "$1" --threads 1 --exact --json --max-length 20 --chat "${@:2}" 'x y'; }
  run_generate inside.gguf >one
  run_generate json.gguf --chat-template-file own.jinja >other
  check 'a template in the model' [ -s one ]
  same one other
  [ -d "${SLUICE_LLAMA_TEMPLATES:-}" ] || echo "not tried: chat templates of models, which tools/fetch-llama brings"
  for name in Qwen-Qwen2.5-7B-Instruct Qwen-Qwen3-0.6B Qwen3-Coder meta-llama-Llama-3.1-8B-Instruct openai-gpt-oss-120b GLM-4.6 MiniMax-M2 \
    deepseek-ai-DeepSeek-V3.2 mistralai-Mistral-Nemo-Instruct-2407 google-gemma-4-31B-it ibm-granite-granite-4.0 moonshotai-Kimi-K2; do
    file=${SLUICE_LLAMA_TEMPLATES:-}/$name.jinja
    [ -e "$file" ] || continue
    start --chat-template-file "$file"
    check "the template $name" client template "$file"
    stop
  done
fi
always=(-m model.gguf --threads 1 --exact)

# ---- few cells, few sequences ----
start --context 256 --sequences 8 --size 4
check 'many in little room' client many <prompts
check 'more samples than sequences' [ "$(ask /v1/completions '{"prompt": "a", "n": 8}' -o /dev/null -w '%{http_code}')" = 400 ]
{ printf '{"prompt": "'; head -c 2000 /dev/zero | tr '\0' a; printf '"}'; } >long
check 'a prompt that never fits' grep -q -E '^(400|413)$' <(ask /v1/completions @long -o /dev/null -w '%{http_code}\n')
stop

# ---- a trained model ----
[ -n "$stories" ] || echo "not tried: a trained model, which lies beside the repository"
if [ -n "$stories" ]; then
  always=(-m "$stories" --threads 1 --exact --end 1)
  start
  ask /v1/completions '{"prompt": "Once</s>a", "max_tokens": 2}' >/dev/null
  check 'names of control tokens' grep -q 'names of control tokens' err
  ask /v1/completions '{"prompt": "Once upon a time", "temperature": 0, "stop": "."}' >out
  says '"finish_reason":"stop".*"text":", there was a little girl named Lily"'
  ask /v1/completions '{"prompt": "Once upon a time", "max_tokens": 0, "echo": true, "logprobs": 1}' >out
  says '"tokens":\[" Once"," upon"," a"," time"\]'
  says '"text_offset":\[0,4,9,11\]'
  ask /v1/completions '{"prompt": "Once upon a time", "temperature": 0, "max_tokens": 60, "json_schema": {"type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name", "age"]}}' >out
  says '"text":"\{[ n\\]*\\"name\\":[ n\\]*\\".*\\",[ n\\]*\\"age\\":[ n\\]*-?[0-9]{1,15}[^0-9].*\}"'
  ask /v1/completions '{"prompt": "Once upon a time", "temperature": 0, "max_tokens": 60, "white_space": 0, "response_format": {"type": "json_schema",
    "json_schema": {"name": "a", "schema": {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"]}}}}' >out
  says '"text":"\{\\"name\\":\\".*\\",\\"age\\":[0-9-]+\}"'
  stop
fi
report
