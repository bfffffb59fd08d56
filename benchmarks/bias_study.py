#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bias_study.py TRANSLATE BLEU SOURCES REFERENCES: boosted names against forced names against none.

Sentences of a text in which exactly one word with a capital stands in source and reference alike, a name. It is replaced in both
by an invented one that the model has not seen, of --names, in turn. Each way of decoding then gets the names:

    none     nothing
    N at B   --bias: a list of N names for every sentence, B nats each: the 20 of the study, and other invented ones
    forced   --constraints: the name of the sentence

Counted of each: sentences whose translation has the name (recall); translations that have another name of the longest list (false); BLEU
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
        longest = [*NAMES, *invented(max(options.lists))]
        for count in options.lists:
            for boost in options.boosts:
                file = at / f"{count}at{boost}"
                file.write_text("".join(f"{name}\t{boost:g}\n" for name in longest[:count]))
                ways.append((f"{count} at {boost:g}", ["--bias", file]))
                if count == len(NAMES):
                    ways.append((f"{count} at {boost:g}, once", ["--bias", file, "--bias-once"]))
        ways.append(("forced", ["--constraints", at / "forced"]))
        print("| names | recall | false | BLEU | broken | seconds |\n| --- | --- | --- | --- | --- | --- |")
        for way, flags in ways:
            done = subprocess.run([options.translate, "--input", at / "sources", "--output", at / "out", "--stats", at / "stats",
                            "--width", str(options.width), *flags], stderr=subprocess.DEVNULL)
            assert done.returncode in (0, 1), way  # 1: constraints of a sentence could not be met
            texts = (at / "out").read_text().splitlines()
            held = [name in words(text) for text, (_, _, name) in zip(texts, chosen, strict=True)]
            false = sum(bool(set(words(text)) & set(longest) - {name}) for text, (_, _, name) in zip(texts, chosen))
            hurt = sum(broken(text, reference, name) for text, (_, reference, name) in zip(texts, chosen))
            with open(at / "out") as mine:
                said = subprocess.run([options.bleu, at / "references"], stdin=mine, capture_output=True, text=True, check=True).stdout
            bleu = re.search(r"[\d.]+", said.split("=", 1)[-1])[0]
            seconds = json.loads((at / "stats").read_text())["seconds"]["total"]
            print(f"| {way} | {100 * sum(held) / len(chosen):.1f} % | {false} | {bleu} | {hurt} | "
                  f"{seconds:.1f} |", flush=True)
            for (source, _, _), text in list(zip(chosen, texts))[:options.show]:
                print(f"    {source}  ->  {text}")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for one in "translate", "bleu", "sources", "references":
    parser.add_argument(one)
parser.add_argument("--boosts", type=float, nargs="+", default=[5, 10, 15, 20, 30])
parser.add_argument("--lists", type=int, nargs="+", default=[20, 1000])
parser.add_argument("--width", type=int, default=5)
parser.add_argument("--show", type=int, default=0)
study(parser.parse_args())
