#!/usr/bin/env bash
# scripts/peers over programs that stand in for the benchmarks: their figures, the right way round; what is missing, and what fails,
# is named; nothing is written where nothing was measured; OPENBLAS_CORETYPE reaches nobody.   peers.test.sh ROOT PYTHON
set -euo pipefail
root=$1 python=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
says() { grep -qF -- "$1" "$work/page.md" || { cat "$work/page.md" >&2; fail "the page lacks: $1"; }; }
peers() { "$python" "$root/scripts/peers" --bin "$work/bin" --python /nowhere/python --quick "$@" 2>"$work/err"; }

mkdir "$work/bin"
if peers --out "$work/page.md"; then fail "nothing was found, and it ended well"; fi
grep -q 'no peer was found' "$work/err" || fail "it does not say that nothing was found"
[ ! -e "$work/page.md" ] || fail "nothing was found, and a page was written"

cat >"$work/bin/sluice.bench.ctranslate2" <<'P'
#!/bin/sh
[ -z "${OPENBLAS_CORETYPE+set}" ] && [ "$OMP_NUM_THREADS" = 1 ] || exit 3
echo 'beam of 5, batches of 64, 8 sentences'
echo "  CTranslate2's own loop           8.00 ms a sentence   ratio 1.000 (1.000 to 1.000)   8 outputs the same"
echo '  its hidden vectors, float32      4.00 ms a sentence   ratio 0.500 (0.400 to 0.800)   7 outputs the same'
P
cat >"$work/bin/sluice.bench.peer_onednn" <<'P'
#!/bin/sh
cat <<'J'
{"context": {"onednn": "2.6.3", "openblas": "OpenBLAS 0.3.21 DYNAMIC_ARCH SkylakeX MAX_THREADS=64"}, "benchmarks": [
{"run_name": "peer_onednn/float32/n:8000/d:256/rows:5", "ours_GFs": 60.0, "onednn_GFs": 30.0, "ours_over_onednn": 2.0,
 "openblas_GFs": 120.0, "ours_over_openblas": 0.5}]}
J
P
printf '#!/bin/sh\necho no such device >&2\nexit 1\n' >"$work/bin/sluice.bench.llama"
chmod +x "$work"/bin/*
if OPENBLAS_CORETYPE=Prescott peers --out "$work/page.md"; then fail "a program failed, and it ended well"; fi
grep -q 'a program failed' "$work/err" || fail "it failed: $(cat "$work/err")"

says '| beam of 5, batches of 64 | its hidden vectors, float32 | 4.00 | **2.00** (1.25 to 2.50) | 7 of 8 |'
says '| float32 | 5 | 60.0 | oneDNN | 30.0 | **2.00** |'
says '| float32 | 5 | 60.0 | OpenBLAS | 120 | **0.50** |'
says '| products, float32 | OpenBLAS | 0.50 to 0.50 |'
says '| OpenBLAS | 0.3.21, which chose SkylakeX |'
says 'Not measured: `sluice.bench.log_softmax_top_k` was not built.'
says 'Not measured: `sluice.bench.llama` failed: no such device.'
says 'These figures mean nothing.'
# A page has a section for each processor; a run replaces its own.
sections() { grep -c '^## ' "$work/page.md" || true; }
[ "$(sections)" = 1 ] || fail "a first page has $(sections) sections"
{ sed '/^## /,$d' "$work/page.md"; printf '## Another processor\n\nMeasured long ago.\n\n'; sed -n '/^## /,$p' "$work/page.md"; printf '\n## A third\n\nLast.\n'; } >"$work/both"
mv "$work/both" "$work/page.md"
sed -i 's/2\.00/9.99/' "$work/page.md"
if peers --out "$work/page.md"; then fail "a program failed, and it ended well"; fi
[ "$(sections)" = 3 ] || fail "of three sections there are $(sections)"
says 'Measured long ago.'
says '| float32 | 5 | 60.0 | oneDNN | 30.0 | **2.00** |'
if grep -q '9\.99' "$work/page.md"; then fail "its own section was not replaced"; fi
[ "$(tail -n 3 "$work/page.md" | tr '\n' ' ')" = "## A third  Last. " ] || fail "the last section changed: $(tail -n 3 "$work/page.md")"
rm "$work/bin/sluice.bench.llama"
before=$(cksum "$root/docs/benchmarks/peers.md")
peers >"$work/out" || fail "it failed: $(cat "$work/err")"
grep -q '^# Peers in one table' "$work/out" || fail "--quick does not write to its output"
[ "$(cksum "$root/docs/benchmarks/peers.md")" = "$before" ] || fail "--quick wrote the page that ships"
cat >"$work/bin/sluice.bench.llama" <<'P'
#!/bin/sh
echo '{"context": {}, "benchmarks": [{"run_name": "tiny", "error_occurred": true, "error_message": "no cells"}]}'
P
chmod +x "$work/bin/sluice.bench.llama"
if peers --out "$work/page.md"; then fail "a benchmark failed, and it ended well"; fi
says 'Not measured: `sluice.bench.llama` failed: no cells.'
echo 'what is this' >"$work/odd"
printf '#!/bin/sh\ncat %s\n' "$work/odd" >"$work/bin/sluice.bench.ctranslate2"
if peers --out "$work/page.md"; then fail "output that is not understood, and it ended well"; fi
says 'Not measured: `sluice.bench.ctranslate2` printed what is not understood: what is this.'
rm "$work/bin/sluice.bench.ctranslate2" "$work/bin/sluice.bench.llama"
# The wheel of ctranslate2, by a Python that stands in for one.
printf '#!/bin/sh\n' >"$work/bin/translate"
cat >"$work/python" <<'P'
#!/bin/sh
case $* in
  *importlib.metadata*) echo '{"pyctcdecode": "0.5.0", "fast-ctc-decode": "0.3.6"}' ;;
  -c*) ;;
  *peer_faster_whisper*) cat <<'J' ;;
{"faster_whisper": "1.2.1", "rows": [{"search": "greedy", "files": 11, "same": 10, "times": [1.25, 1.5], "s": 2.0, "faster_whisper_s": 2.5}]}
J
  *python_ctc_peers*) cat <<'J' ;;
371 frames, beam 100

| beside | its ms | ours, ms | times as fast | the same text |
| --- | --- | --- | --- | --- |
| pyctcdecode, its cuts | 90.0 | 3.00 | 30.0 | yes |
| pyctcdecode, its cuts, words | 80.0 | 4.00 | 20.0 | no |
| flashlight | | | | left out: No module named 'flashlight' |
| fast-ctc-decode | 30.0 | 6.00 | 5.0 | yes |
J
  *) [ -z "${OPENBLAS_CORETYPE+set}" ] || exit 3
    cat <<'J' ;;
{"ctranslate2": "4.8.5", "rows": [{"precision": "int8", "search": "greedy", "sentences": 8, "same": 7, "ctranslate2_ms": 3.0, "ms": 1.5,
 "times": [2.0, 1.5, 4.0], "ours_differ": 1, "ours_edits": 0.25, "ctranslate2_differ": 2, "ctranslate2_edits": 0.5}]}
J
esac
P
printf '#!/bin/sh\n' | tee "$work/bin/transcribe" >"$work/bin/serve_llama"
cp "$work/bin/translate" "$work/bin/espeak-ng"
chmod +x "$work/python" "$work"/bin/{translate,transcribe,serve_llama,espeak-ng}
mkdir -p "$work/whisper/ctranslate2"
PATH="$work/bin:$PATH" peers --python "$work/python" --whisper "$work/whisper" --llama-server "$work/bin/serve_llama" --model "$work/no.gguf" >"$work/page.md" || fail "it failed: $(cat "$work/err")"
says '| greedy | 2.50 | 2.00 | **1.38** (1.25 to 1.50) | 10 of 11 files |'
says '| faster-whisper | 1.2.1 |'
says '| pyctcdecode, its cuts, words | 80.0 | 4.00 | **20.0** | no |'
says '| CTC | pyctcdecode | 20.00 to 30.00 |'
says '| fast-ctc-decode | 0.3.6 |'
says '| flashlight-text | not measured |'
says 'Not measured: no model at `no.gguf` (`tools/fetch-smollm2`).'
says '| int8 | greedy | 3.00 | 1.50 | **2.00** (1.50 to 4.00) | 7 of 8 |'
says '| greedy | 2 of 8, 0.50 % | 1 of 8, 0.25 % |'
says '| ctranslate2 (wheel) | 4.8.5 |'
echo "peers: all as it should be"
