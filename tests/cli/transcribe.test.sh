#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# transcribe.test.sh TRANSCRIBE WHISPER: the command line of transcribe, with what tools/fetch-whisper has put into the folder WHISPER.
# Speech comes from espeak-ng, where it is there.
# shellcheck disable=SC2034,SC2154  # what program.sh reads and sets
program=$(realpath "$1") folder=$(realpath "$2")
# shellcheck source=tests/cli/program.sh
. "$(dirname "$(realpath "$0")")/program.sh"
always=("$folder")

cat >sounds.py <<'END'
import math, wave
def write(name, samples):
    with wave.open(name, "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(b"".join(int(x * 32767).to_bytes(2, "little", signed=True) for x in samples))
write("silence.wav", [0] * 32000)
write("tone.wav", [0.3 * math.sin(2 * math.pi * 440 * i / 16000) for i in range(48000)])
write("nothing.wav", [])
END
python3 sounds.py || fail 'python3 writes sounds'

# ---- refused before any work ------------------------------------------------------------------------------------------

unborn=(texts/silence.txt)
mkdir texts
refused 'FILE is required'
refused 'missing.wav: cannot be opened' silence.wav missing.wav --output texts
printf 'this is no sound\n' >broken.wav
refused 'broken.wav: is no WAV file' silence.wav broken.wav --output texts
refused "--format: 'doc' is not one of json, srt, txt, vtt" silence.wav --format doc
refused "--language: 'xx' is no language of this model" silence.wav --language xx
refused "--beam: '0' is not a number from 1 to 100" silence.wav --beam 0
refused "--temperature: '-1' is not a number in \[0, 2\]" silence.wav --temperature=-1
refused '--word-timestamps: --format txt has no words: must be json or vtt' silence.wav --word-timestamps
refused '--output: nowhere: is no folder' silence.wav --output nowhere
refused '--output: two files would be called silence.txt' silence.wav texts/silence.wav --output texts
refused 'words: cannot be opened' silence.wav --hotwords words
always=(.)
refused 'vocabulary.txt: cannot be opened' silence.wav
always=("$folder")

# ---- what is not speech ------------------------------------------------------------------------------------------------

run silence.wav tone.wav nothing.wav --beam 1 --temperature 0 --format json >found 2>err
check "exit code, $(cat err)" [ $? -eq 0 ]
lines 3 found
check 'durations' [ "$(grep -o '"duration":[0-9.]*' found | tr '\n' ' ')" = '"duration":2.0 "duration":3.0 "duration":0.0 ' ]

# ---- speech ------------------------------------------------------------------------------------------------------------

if ! command -v espeak-ng >/dev/null; then
  [ $failed -ne 0 ] || printf 'SKIPPED: speech: espeak-ng was not found\n'
  report
  exit
fi
espeak-ng -v en-us -s 150 -w one.wav 'Please send the invoice for the third quarter to the accounting department before Friday.'
espeak-ng -v en-us -s 150 -w two.wav 'My brother bought a small red boat last summer. He sails it on the lake every weekend.'
run one.wav two.wav --language en --format json --output texts --progress >found 2>err
check "exit code, $(cat err)" [ $? -eq 0 ]
check 'nothing on standard output' [ ! -s found ]
check 'says how far it is' grep -q -E '^one.wav: [0-9.]+ of [0-9.]+ s$' err
run two.wav --language en --batch 1 --format json >alone
same alone texts/two.json 'alone and with another'
cat >check.py <<'END'
import json, sys
words = lambda text: set("".join(c for c in text.lower() if c.isalpha() or c == " ").split())
for name, said in (("one", "please send the invoice for the third quarter to the accounting department before friday"),
                   ("two", "my brother bought a small red boat last summer")):
    found = json.load(open("texts/%s.json" % name))
    assert found["language"] == "en" and len(words(said) & words(found["text"])) >= 0.8 * len(words(said)), found["text"]
    end = 0
    for segment in found["segments"]:
        times = [token for token in segment["tokens"] if token > 50363]
        assert end <= segment["start"] < segment["end"] <= found["duration"] + 0.1 and times == sorted(times), segment
        end = segment["end"]
END
if python3 check.py 2>err; then pass; else fail "transcripts: $(tail -n 1 err)"; fi
# Two sentences with three seconds of silence between them.
cat >join.py <<'END'
import wave
with wave.open("one.wav", "rb") as a, wave.open("two.wav", "rb") as b, wave.open("both.wav", "wb") as to:
    to.setparams(a.getparams())
    to.writeframes(a.readframes(a.getnframes()) + bytes(6 * a.getframerate()) + b.readframes(b.getnframes()))
    print(a.getnframes() / a.getframerate())
END
ends=$(python3 join.py)
run both.wav --language en --beam 1 --temperature 0 --format json --word-timestamps >timed
cat >words.py <<'END'
import json, sys
ends = float(sys.argv[1])
segments = json.load(open("timed"))["segments"]
words = [word for segment in segments for word in segment["words"]]
assert "".join(word["word"] for word in words) == "".join(segment["text"] for segment in segments)
assert all(a["start"] <= a["end"] <= b["start"] + 0.01 for a, b in zip(words, words[1:])), words
assert all(0 < word["probability"] <= 1 for word in words), words
before = [word for word in words if word["end"] < ends + 0.3]
after = [word for word in words if word["start"] > ends + 2]
assert len(before) + len(after) == len(words) and len(before) > 8 and len(after) > 8, words
at = {word["word"].strip(" .,").lower(): word["start"] for word in words}
assert at["invoice"] < at["accounting"] < at["friday"] < ends < ends + 3 < at["boat"] < at["lake"], at
END
if python3 words.py "$ends" 2>err; then pass; else fail "words: $(tail -n 1 err)"; fi
run one.wav --beam 1 --format srt >one.srt
check 'SRT begins with 1' [ "$(line one.srt 1)" = 1 ]
check 'and times' grep -q -E '^00:00:00,[0-9]{3} --> 00:00:0[0-9],[0-9]{3}$' one.srt
printf 'Quartex\t30\n' >words
run one.wav --language en --beam 1 --temperature 0 --hotwords words >with
check "a phrase that earns enough is heard: $(cat with)" grep -q -i quartex with
run one.wav --language en --temperature 0.2 --best-of 2 --format json >drawn
check "drawn at a temperature: $(cat drawn)" grep -q -E '"avg_logprob":-0[.][0-9]+,.*"temperature":0.2' drawn
report
