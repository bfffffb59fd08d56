#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# onnx_generate.test.sh ONNX_GENERATE GRAPHS REFERENCES PIECES SAMPLE: the command line of onnx_generate, with the graphs that
# tools/onnx_models.py has written. REFERENCES are outputs of PyTorch with the same weights.
# shellcheck disable=SC2034,SC2154  # what program.sh reads and sets
cut=$(dirname "$(realpath "$0")")/../../tools/onnx-cut
program=$(realpath "$1") graphs=$(realpath "$2") references=$(realpath "$3") pieces=$(realpath "$4") sample=$(realpath "$5")
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "$0")")/program.sh"

printf 'this is no graph\n' >broken.onnx
tiny=$graphs/tiny/model.onnx gru=$graphs/gru/model.onnx de=$graphs/transformer
translating=(--encoder "$de/encoder_model.onnx" --bos 1 --eos 2 --never 0 --never 1 --context 512 --max-length 256)

# ---- refused before any work ------------------------------------------------------------------------------------------

refused 'DECODER is required'
refused '--n-best = 2: must be at most --width, 1' --n-best 2 "$tiny"
refused '--width and --sample' --sample --width 2 "$tiny"
refused "--state: 'a' is not IN=OUT" --state a "$tiny"
refused "--temperature: '0' is not a number > 0" --temperature 0 "$tiny"
refused 'vocabulary.bos = 70' --bos 70 "$tiny"
refused 'options.size = 61' --size 61 "$tiny"
refused 'input of tokens = ids' --tokens ids "$tiny"
refused 'output = scores' --answer scores "$tiny"
refused 'input = state_in: has no output logits' --state state_in=logits "$gru"
refused 'missing: cannot be opened' --input missing "$tiny"
refused 'missing: cannot be opened' --pieces missing "$tiny"
printf '3 4\n5 x\n' >words
refused 'words:2: is not numbers of tokens' --input words "$tiny"
run broken.onnx >out 2>err </dev/null
check 'exit code of a broken graph' [ $? -eq 1 ]
check 'names it' grep -q '^onnx_generate: onnxruntime: broken.onnx: ' err

# ---- the outputs of PyTorch -----------------------------------------------------------------------------------------------

python3 - "$references" <<'END'
import json, sys
sentences = json.load(open(sys.argv[1]))["sentences"]
with open("sources", "w") as sources, open("expected", "w") as expected:
    for one in sentences:
        print(*one["source"], file=sources)
        print(*one["greedy"]["tokens"][:-1], file=expected)
END
check 'sources' [ "$(wc -l <sources)" -eq 60 ]
run "${translating[@]}" --input sources "$de/decoder_model_merged.onnx" >merged
same merged expected
run "${translating[@]}" --first "$de/decoder_model.onnx" "$de/decoder_with_past_model.onnx" --streaming --batch 7 <sources >apart
same apart expected
run "${translating[@]}" --layer "$de/layer.onnx" "$de/hidden.onnx" <sources >hidden
same hidden expected

# ---- without the last product -----------------------------------------------------------------------------------------------

for python in python3 /usr/bin/python3; do "$python" -c 'import onnx' 2>/dev/null && break; done
refuses() { # refuses PATTERN ARGUMENTS...
  "$python" "$cut" "${@:2}" >out 2>err
  check "onnx-cut's exit code: ${*:2}" [ $? -eq 1 ]
  check "onnx-cut's message: $(cat err)" grep -q -E "^onnx-cut: .*$1" err
}
refuses 'usage' "$tiny"
refuses 'there is no output logits, but last_hidden_state' "$de/encoder_model.onnx" a.onnx b.onnx
refuses 'last_hidden_state ends in LayerNormalization, not in a product' "$de/encoder_model.onnx" a.onnx b.onnx last_hidden_state
refuses 'present.0.key ends in Concat' "$tiny" a.onnx b.onnx present.0.key
check 'nothing is left' [ ! -e a.onnx ]
half=$graphs/transformer_float16
translating[1]=$half/encoder_model.onnx
check 'cuts halves' "$python" "$cut" "$half/decoder_model_merged.onnx" half.onnx layer.onnx
run "${translating[@]}" --layer layer.onnx half.onnx <sources >half
check 'halves find nearly the same' [ "$(diff half expected | grep -c '^<')" -le 2 ]
translating[1]=$de/encoder_model.onnx

# ---- text -------------------------------------------------------------------------------------------------------------------

run "${translating[@]}" --pieces "$pieces" --input "$sample" --width 4 "$de/decoder_model_merged.onnx" >text
lines "$(wc -l <"$sample")" text
check 'it is English' grep -q -w 'the' text
run "${translating[@]}" --pieces "$pieces" --input "$sample" --width 4 --n-best 3 --scores --streaming "$de/decoder_model_merged.onnx" >best
lines $((3 * $(wc -l <"$sample"))) best
check 'the first is the best' cmp -s text <(awk 'NR % 3 == 1' best | cut -f 2)

# ---- prompts ----------------------------------------------------------------------------------------------------------------

printf '3 4 5\n\n7\n30 31 32 33\n' >prompts
for graph in "$tiny" "$gru"; do
  run --never 1 --max-length 20 --input prompts "$graph" >one --batch 1
  run --never 1 --max-length 20 --input prompts "$graph" >many --streaming --threads 2
  same one many "$graph"
  lines 4 one
  check 'as long as asked' [ "$(wc -w <one)" -eq 80 ]
  run --never 1 --max-length 20 --input prompts --sample --seed 5 --n-best 2 --top-k 10 --temperature 2 "$graph" >drawn
  run --never 1 --max-length 20 --input prompts --sample --seed 5 --n-best 2 --top-k 10 --temperature 2 "$graph" >again --batch 2
  run --never 1 --max-length 20 --input prompts --sample --seed 6 --n-best 2 --top-k 10 --temperature 2 "$graph" >other
  same drawn again
  differ drawn other
  lines 8 drawn
done
run --never 1 --max-length 20 --input prompts --layer "$graphs/gru/layer.onnx" "$graphs/gru/hidden.onnx" >cut
same cut one
run --never 1 --max-length 20 --input prompts --state state_in=state_out "$gru" >named
same named one

# One that cannot be answered does not keep the others.
printf '3 4\n99\n5\n' >prompts
run --max-length 5 --batch 1 --input prompts "$tiny" >out 2>err
check 'exit code' [ $? -eq 1 ]
check 'says who' grep -q '^onnx_generate: line 2: ' err
check 'answers the others' [ "$(grep -c . out)" -eq 2 ]
report
