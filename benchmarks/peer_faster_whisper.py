#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`transcribe` beside faster-whisper, with the same weights, one thread, at temperature 0 alone: seconds of the processor, and segments that
are the same, token for token.

  pip install faster-whisper
  benchmarks/peer_faster_whisper.py --transcribe build/applications/bin/transcribe --model build/whisper [--rounds N] [--json] [FILE.wav ...]

FILE: WAV, 16-bit PCM, 16,000 samples a second, one channel. Without any, espeak-ng (of Debian) speaks twelve sentences. In turn, all files in a call. Loading
does not count: of `transcribe` the time of the shortest file alone is taken off, and that file is not counted with faster-whisper.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import wave

if "OPENBLAS_CORETYPE" in os.environ:  # OpenBLAS reads it when it is loaded
    del os.environ["OPENBLAS_CORETYPE"]
    os.execv(sys.executable, [sys.executable, *sys.argv])
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import faster_whisper  # noqa: E402
import numpy as np  # noqa: E402

SAID = {
    "en": ("The river was frozen from bank to bank, and nobody crossed it before noon.",
           "Please tell the driver that two of the seven boxes are still missing.",
           "On the ninth of May we counted four hundred and twelve birds.",
           "She had mended the clock, but the bell would not ring any more.",
           "There is a shorter way behind the mill, if the gate is open.",
           "Nobody knew who had painted the small boat yellow overnight.",
           "He asked for a room with a window, and was given one with two doors.",
           "The train to the coast leaves at half past six from the other platform.",
           "What costs more, the lamp or the table that it stands on?"),
    "de": ("Der alte Leuchtturm brennt seit drei Jahren nicht mehr.", "Wir haben den letzten Bus um zwei Minuten verpasst."),
    "fr": ("La petite boutique au coin de la rue est fermée le lundi.",),
}


def speak(folder):
    """-> paths of files with the sentences, spoken at several speeds."""
    if not shutil.which("espeak-ng"):
        sys.exit("peer_faster_whisper: needs espeak-ng (of Debian), or files")
    paths = []
    for language, sentences in SAID.items():
        for i, sentence in enumerate(sentences):
            raw, path = folder / "raw.wav", folder / f"{language}{i}.wav"
            subprocess.run(["espeak-ng", "-v", language, "-s", str(130 + 15 * (i % 4)), "-w", raw, sentence], check=True)
            write(path, resampled(*read(raw)))
            paths.append(path)
    return paths


def read(path):
    """-> samples, their number in a second."""
    with wave.open(str(path)) as file:
        if file.getsampwidth() != 2 or file.getnchannels() != 1:
            sys.exit(f"peer_faster_whisper: {path}: is not 16-bit PCM with one channel")
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768, file.getframerate()


def resampled(samples, rate):
    at = np.arange(int(len(samples) * 16000 / rate)) * rate / 16000
    return np.interp(at, np.arange(len(samples)), samples)


def write(path, samples):
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


def ours(arguments, paths, beam):
    """-> seconds of the processor, loading included; the segments' tokens by file."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    made = subprocess.run([arguments.transcribe, arguments.model, *paths, "--format", "json", "--beam", str(beam), "--temperature", "0"],
                          capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if made.returncode != 0:
        sys.exit(f"peer_faster_whisper: transcribe: {made.stderr.strip()}")
    told = [json.loads(line) for line in made.stdout.splitlines()]
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            {one["file"]: [segment["tokens"] for segment in one["segments"]] for one in told})


def theirs(model, paths, beam):
    began, told = time.process_time(), {}
    for path in paths:
        segments, _ = model.transcribe(read(path)[0], beam_size=beam, temperature=0, vad_filter=False)
        told[str(path)] = [list(segment.tokens) for segment in segments]
    return time.process_time() - began, told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transcribe", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True, help="what tools/fetch-whisper has made")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="three files, greedily: to see whether it runs")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    model = faster_whisper.WhisperModel(str(arguments.model / "ctranslate2"), device="cpu", compute_type="float32", cpu_threads=1, local_files_only=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        paths = arguments.files or speak(pathlib.Path(folder))
        for path in paths:
            if read(path)[1] != 16000:
                sys.exit(f"peer_faster_whisper: {path}: has {read(path)[1]} samples a second, not 16000")
        paths = sorted(paths, key=lambda path: path.stat().st_size)[:3 if arguments.quick else None]
        shortest, rest = paths[:1], paths[1:]
        for search, beam in (("greedy", 1),) if arguments.quick else (("greedy", 1), ("beam of 5", 5)):
            times, seconds = [], [[], []]
            theirs(model, shortest, beam)  # so that what it makes once does not count
            for _ in range(1 if arguments.quick else arguments.rounds):
                loading, (all_of, told) = ours(arguments, shortest, beam)[0], ours(arguments, paths, beam)
                its, said = theirs(model, rest, beam)
                mine = max(1e-9, all_of - loading)
                times.append(its / mine), seconds[0].append(mine), seconds[1].append(its)
            same = sum(said[str(path)] == told[str(path)] for path in rest)
            rows.append({"search": search, "files": len(rest), "same": same, "times": times, "s": statistics.median(seconds[0]),
                         "faster_whisper_s": statistics.median(seconds[1])})
    if arguments.json:
        print(json.dumps({"faster_whisper": faster_whisper.__version__, "rows": rows}))
        return
    print(f"faster-whisper {faster_whisper.__version__}\n\n| search | files | its s | ours, s | times as fast | the same segments |\n| --- | --- | --- | --- | --- | --- |")
    for one in rows:
        print("| %s | %d | %.2f | %.2f | %.2f (%.2f to %.2f) | %d |" % (
            one["search"], one["files"], one["faster_whisper_s"], one["s"], statistics.median(one["times"]), min(one["times"]), max(one["times"]), one["same"]))


if __name__ == "__main__":
    main()
