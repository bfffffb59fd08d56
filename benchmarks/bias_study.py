#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bias_study.py TRANSLATE BLEU SOURCES REFERENCES: boosted names against forced names against none.

Sentences of a text in which exactly one word with a capital stands in source and reference alike, a name. It is replaced in both
by an invented one that the model has not seen, of --names, in turn. Each way of decoding then gets the names:

    none     nothing
    soft B   --bias: all names of the study for every sentence, B nats each, and --distractors other invented names
    forced   --constraints: the name of the sentence

Counted of each: sentences whose translation has the name (recall); translations that have another name of the list (false); BLEU
against the references; and broken ones. A translation is broken if

    - a word stands twice in a row, or three words in a row occur twice, and the reference has neither; or
    - the name occurs more often than in the reference; or
    - it has more than 1.6 times the words of the reference and more than 3 words more, or fewer than half and 3 fewer; or
    - it does not end in a mark (.!?") although the reference does.
"""
import argparse
import json
import pathlib
import random
import re
import subprocess
import tempfile

NAMES = ("Quervenna Zolmark Brintavik Osgelund Thravenko Ulmiretz Pexandra Vostigard Jelmorin Kraspiotti Wendolyx Yastremoor "
         "Fenwicola Dromasch Lirquist Gravanelle Hultzpeter Ombrasteau Sziklor Tavrendish").split()


def words(text):
    return re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text)


def repeats(text):
    found = [word.lower() for word in words(text)]
    threes = list(zip(found, found[1:], found[2:]))
    return any(a == b for a, b in zip(found, found[1:])) or len(set(threes)) < len(threes)


def broken(text, reference, name):
    mine, wanted = len(words(text)), len(words(reference))
    return (repeats(text) and not repeats(reference) or text.count(name) > reference.count(name)
            or mine > 1.6 * wanted and mine > wanted + 3 or mine < 0.5 * wanted and mine < wanted - 3
            or reference[-1:] in tuple('.!?"') and text[-1:] not in tuple('.!?"'))


def invented(count):
    """Other names, for company."""
    random.seed(7)
    parts = [a + b for a in "b d f g k l m n p r s t v z br st kr sch tr".split() for b in "a e i o u an el or in us".split()]
    made = set()
    while len(made) < count:
        made.add("".join(random.choice(parts) for _ in range(random.randint(2, 4))).capitalize())
    return sorted(made - set(NAMES))


def study(options):
    sources, references = (pathlib.Path(file).read_text().splitlines() for file in (options.sources, options.references))
    chosen = []
    for source, reference in zip(sources, references, strict=True):
        found = [word for word in set(words(source)) & set(words(reference)) if word[0].isupper() and len(word) > 2]
        if len(found) == 1 and source.count(found[0]) == 1 and reference.count(found[0]) == 1:
            name = NAMES[len(chosen) % len(NAMES)]
            chosen.append((source.replace(found[0], name), reference.replace(found[0], name), name))
    print(f"{len(chosen)} of {len(sources)} sentences have one name.\n")
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        (at / "sources").write_text("".join(source + "\n" for source, _, _ in chosen))
        (at / "references").write_text("".join(reference + "\n" for _, reference, _ in chosen))
        (at / "forced").write_text("".join(json.dumps({"all": [name]}) + "\n" for _, _, name in chosen))
        ways = [("none", [])]
        for boost in options.boosts:
            file = at / f"soft{boost}"
            file.write_text("".join(f"{name}\t{boost}\n" for name in [*NAMES, *invented(options.distractors)]))
            ways.append((f"soft {boost}", ["--bias", file]))
            ways.append((f"soft {boost}, once", ["--bias", file, "--bias-once"]))
        ways.append(("forced", ["--constraints", at / "forced"]))
        print("| names | recall | false | BLEU | broken | BLEU of those without a name in `none` | seconds |\n| --- | --- | --- | --- | --- | --- | --- |")
        missed = None
        for way, flags in ways:
            subprocess.run([options.translate, "--input", at / "sources", "--output", at / "out", "--stats", at / "stats",
                            "--width", str(options.width), *flags], check=True, stderr=subprocess.DEVNULL)
            texts = (at / "out").read_text().splitlines()
            held = [name in words(text) for text, (_, _, name) in zip(texts, chosen, strict=True)]
            missed = [not one for one in held] if missed is None else missed
            false = sum(any(other != name and other in words(text) for other in NAMES) for text, (_, _, name) in zip(texts, chosen))
            hurt = sum(broken(text, reference, name) for text, (_, reference, name) in zip(texts, chosen))

            def bleu(keep):
                (at / "h").write_text("".join(text + "\n" for text, kept in zip(texts, keep) if kept))
                (at / "r").write_text("".join(one[1] + "\n" for one, kept in zip(chosen, keep) if kept))
                said = subprocess.run([options.bleu, at / "r"], stdin=open(at / "h"), capture_output=True, text=True, check=True).stdout
                return re.search(r"[\d.]+", said.split("=", 1)[-1])[0]

            seconds = json.loads((at / "stats").read_text())["seconds"]["total"]
            print(f"| {way} | {100 * sum(held) / len(chosen):.1f} % | {false} | {bleu([True] * len(chosen))} | {hurt} | "
                  f"{bleu(missed)} | {seconds:.1f} |", flush=True)
            if options.show:
                for i in range(options.show):
                    print(f"    {chosen[i][0]}  ->  {texts[i]}")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for one in "translate", "bleu", "sources", "references":
    parser.add_argument(one)
parser.add_argument("--boosts", type=float, nargs="+", default=[2, 4, 6, 8, 12])
parser.add_argument("--distractors", type=int, default=980)
parser.add_argument("--width", type=int, default=5)
parser.add_argument("--show", type=int, default=0)
study(parser.parse_args())
