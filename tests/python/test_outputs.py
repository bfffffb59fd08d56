# SPDX-License-Identifier: Apache-2.0
"""Outputs end at their stops, as a search through the text finds them; a trace says what was done, and changes nothing; marks are
those of vLLM, and are found; what was decoded before saves calls of the model, and changes nothing."""
import copy
import json
import os
import pathlib
import pickle
import tempfile
import threading
import unittest

import numpy as np

import sluice
from sluice import (BeamSearch, Blockwise, EarlyStopping, Greedy, LengthLimits, ParticleSample, Request, Sample, StochasticBeam, SuffixCache,
                    Watermark, WatermarkKey, WithSuffixCache, detect_watermark)
from table import EOS, Table, TableModel
from test_decoding import ALL, LENGTH, ORACLES, TEXTS, seen


def spelling(table=None, **more):
    model = TableModel(table, **more)
    model.token_bytes = TEXTS[:model.vocabulary.size]
    return model


def text_of(tokens):
    return b"".join(TEXTS[token] for token in tokens)


def first_stop(tokens, strings, sequences, minimum=0):
    """(number of tokens, index of the stop) of the first stop of an output, by looking everywhere."""
    for n in range(1, len(tokens) + 1):
        if tokens[n - 1] == EOS:
            break
        hits = []
        text, before = text_of(tokens[:n]), text_of(tokens[:n - 1])
        for i, string in enumerate(strings):
            at = text.find(string, max(0, len(before) - len(string) + 1))
            if at >= 0:
                hits.append((0, at + len(string), -len(string), i + len(sequences)))
        for i, sequence in enumerate(sequences):
            if list(tokens[:n][-len(sequence):]) == list(sequence):
                hits.append((1, 0, -len(sequence), i))
        if hits and n >= minimum:
            return n, min(hits)[-1]
    return len(tokens), -1


class Stops(unittest.TestCase):
    STRINGS, SEQUENCES = [b"[]", b"1,1", b",,1"], [[5, 3], [4, 4]]

    def test_greedy_ends_at_the_first(self):
        found = 0
        for minimum in 0, 4:
            stops = dict(stop=self.STRINGS, stop_tokens=self.SEQUENCES, stop_minimum=minimum)
            for search in Greedy(length=LENGTH), Blockwise(block=4, length=LENGTH):
                model = spelling(Table(eos_bias=-6), abilities=ALL, guess=True)
                plain = sluice.decode(model, range(40), search)
                for whole, result in zip(plain, sluice.decode(model, range(40), search.replace(**stops))):
                    n, stop = first_stop(whole.tokens, self.STRINGS, self.SEQUENCES, minimum)
                    self.assertEqual((result.tokens, result.best.stop), (whole.tokens[:n], stop))
                    self.assertTrue(result.best.finished or n == 12)
                    found += stop >= 0
        self.assertGreater(found, 60)

    def test_a_wide_beam_finds_the_best_output(self):
        """Among all that end at eos or at their first stop."""
        table, strings, sequences = Table(V=7, eos_bias=-4), [b"1,[", b"]["], [[3, 5]]
        stopped = 0
        for seed in range(4):
            best = (-np.inf, ())
            for length in range(1, 6):
                for tokens in np.ndindex(*([5] * length)):
                    tokens = tuple(token + 2 for token in tokens)  # 2 is eos
                    n, stop = first_stop(tokens, strings, sequences)
                    if n < length or EOS in tokens[:-1] or (tokens[-1] != EOS and (stop < 0 or length == 5)):
                        continue  # the last token allowed is eos
                    log_prob = sum(table.log_probs(seed, tokens[:i])[t] for i, t in enumerate(tokens))
                    best = max(best, (log_prob / (length + (stop >= 0)), tokens, stop))  # a stop counts as the eos that it replaces
            search = BeamSearch(width=1200, length=LengthLimits(max=5), stop=strings, stop_tokens=sequences)
            result, = sluice.decode(spelling(table, limits=sluice.Limits(5000, 64)), [seed], search)
            self.assertEqual((tuple(result.tokens), result.best.stop), best[1:])
            self.assertAlmostEqual(result.score, best[0], 4)
            stopped += best[2] >= 0
        self.assertGreater(stopped, 0)

    def test_samples_and_draws(self):
        for search in Sample(samples=3, length=LENGTH, stop=["1"]), StochasticBeam(width=4, length=LENGTH, stop=["1"]):
            results = sluice.decode(spelling(), range(20), search)
            for result in results:
                for h in result:
                    n, stop = first_stop(h.tokens, [b"1"], [])
                    self.assertEqual((len(h.tokens), h.stop), (n, stop))
            self.assertTrue(any(h.stop == 0 for result in results for h in result))

    def test_text(self):
        decoder = sluice.Decoder(spelling(Table(eos_bias=-6)))
        search = Greedy(length=LENGTH, stop=["[]", "1,1"], stop_tokens=[[4, 4]])
        for result in decoder.decode(range(30), search):
            h, whole = result.best, text_of(result.tokens)
            cut = {-1: whole, 0: whole[:-2], 1: whole[:whole.rfind(b"[]")], 2: whole[:whole.rfind(b"1,1")]}[h.stop]
            self.assertEqual(decoder.text(h, search), cut)
            kept = {-1: whole, 0: whole, 1: cut + b"[]", 2: cut + b"1,1"}[h.stop]
            self.assertEqual(decoder.text(h, search, include_stop=True), kept)
        self.assertEqual(decoder.text(sluice.Hypothesis([3, 7], [], 0, 0, True)), b"[1,")

    def test_each_request_may_have_its_own_in_a_server(self):
        model = spelling(Table(eos_bias=-6))
        requests = [Request(seed, search=Greedy(length=LENGTH, stop=stop)) for seed in range(12) for stop in ([], ["1"], [b"[", b"]"])]
        wanted = sluice.decode(model, requests)
        self.assertGreater(sum(result.best.stop >= 0 for result in wanted), 12)
        with sluice.Server(model, Greedy(length=LENGTH), batch=5) as server:
            futures = [server.submit(request) for request in requests]
            streams = [sum(server.stream(request), []) for request in requests]
            self.assertEqual(seen(future.result() for future in futures), seen(wanted))
        self.assertEqual(streams, [result.tokens for result in wanted])

    def test_generate(self):
        model = spelling(Table(eos_bias=-6))
        model.is_encoder_decoder = True
        plain = sluice.generate(model, range(20), max_new_tokens=12)
        for whole, result in zip(plain, sluice.generate(model, range(20), max_new_tokens=12, stop_strings="1,", tokenizer=None)):
            self.assertEqual(result.tokens, whole.tokens[:first_stop(whole.tokens, [b"1,"], [])[0]])

    def test_what_is_wrong_is_said(self):
        model = TableModel()
        for search, kind, message in [
                (Greedy(stop=["a"]), TypeError, "needs token_bytes.*stop strings"), (Greedy(stop="a"), TypeError, "a list of strings"),
                (Greedy(stop=[3]), TypeError, "stop = 3: must be a string"),
                (Greedy(stop_tokens=[[]]), sluice.ArgumentError, r"tokens = \[\]: must not be empty"),
                (Greedy(stop_tokens=[3]), TypeError, "stop_tokens = 3: must be a sequence"),
                (Greedy(stop_tokens=[[3]], stop_minimum=-1), sluice.ArgumentError, "stop_minimum = -1")]:
            with self.assertRaisesRegex(kind, message):
                sluice.decode(model, [1], search)
        with self.assertRaisesRegex(sluice.ArgumentError, "must not be empty"):
            sluice.decode(spelling(), [1], Greedy(stop=[""]))
        for phrase, message in ([99], "is outside the vocabulary of 8"), ([EOS], "is an end of sentence"):
            with self.assertRaisesRegex(sluice.DecodingError, message):
                sluice.decode(model, [1], Greedy(stop_tokens=[phrase]))
        with self.assertRaisesRegex(sluice.DecodingError, "cannot end them earlier"):
            sluice.decode(sluice.FunctionModel(lambda tokens: [0.0, 1.0], sluice.Vocabulary(2)), [1], Greedy(
                stop_tokens=[[1]], length=LENGTH))
        with self.assertRaisesRegex(TypeError, "needs token_bytes"):
            sluice.Decoder(model).text(sluice.Hypothesis([3], [], 0, 0, True))
        with self.assertRaisesRegex(sluice.ArgumentError, "is none of these 0 stops"):
            sluice.Decoder(spelling()).text(sluice.Hypothesis([3], [], 0, 0, True, stop=4))


class Traces(unittest.TestCase):
    SEARCHES = [Greedy(length=LENGTH), BeamSearch(width=3, n_best=2, length=LENGTH), Sample(samples=2, length=LENGTH),
                StochasticBeam(width=3, length=LENGTH), Blockwise(block=4, length=LENGTH)]

    def test_a_trace_tells_the_result_and_changes_nothing(self):
        for search in self.SEARCHES:
            model = spelling(abilities=ALL, guess=True)
            wanted = sluice.decode(model, range(6), search)
            requests = [Request(seed, trace="number <4>" if seed == 4 else seed % 2 == 0) for seed in range(6)]
            results = sluice.decode(model, requests, search, batch=4)
            self.assertEqual(seen(results), seen(wanted))
            for seed, result in enumerate(results):
                if seed % 2:
                    self.assertIsNone(result.trace)
                    continue
                events = result.trace.events
                self.assertEqual(events[0], {"sluice_trace": 1})
                self.assertEqual([event["about"] for event in events if "about" in event], ["number <4>"] if seed == 4 else [])
                end = events[-1]
                self.assertEqual(end["end"], seed)
                self.assertEqual([h["tokens"] for h in end["hypotheses"]], [h.tokens for h in result])
                self.assertEqual([event["admit"] for event in events if "admit" in event], [seed])
                steps = [event for event in events if "rows" in event]
                self.assertEqual([event["step"] for event in steps], list(range(len(steps))))
                self.assertTrue(all(row[0] == seed for event in steps for row in event["rows"]))
                self.assertEqual(len([event for event in events if "answer" in event]), len(steps))
                texts = {event["token"]: event["text"] for event in events if "text" in event}
                self.assertEqual(texts, {token: TEXTS[token].decode() for token in texts})
                self.assertGreater(len(texts), 2)

    def test_the_page_shows_in_a_notebook(self):
        result, = sluice.decode(spelling(), [Request(3, trace="a & b")], BeamSearch(width=3, length=LENGTH))
        trace = result.trace
        self.assertTrue(trace.page.startswith("<!") and trace.page.rstrip().endswith("</html>"), trace.page[-40:])
        for line in trace.lines.splitlines():
            json.loads(line)
            self.assertIn(line.replace("<", "\\u003c"), trace.page)
        frame = trace._repr_html_()
        self.assertTrue(frame.startswith("<iframe srcdoc=\"&lt;!"))
        self.assertEqual(frame.count('"'), 6)  # none within the page ends the attribute
        self.assertRegex(repr(trace), r"^<Trace of \d+ events>$")

    def test_servers(self):
        model, search = spelling(), BeamSearch(width=3, length=LENGTH)
        wanted = sluice.decode(model, [Request(seed, trace=True) for seed in range(8)], search, batch=1)
        with sluice.Server(model, search, batch=4, queue=3) as server:
            found = {}

            def work(thread):
                for seed in range(8):
                    found[thread, seed] = server.submit(Request(seed, trace=(seed + thread) % 3 > 0)).result()

            threads = [threading.Thread(target=work, args=[i]) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(len(found), 32)
        for (thread, seed), result in found.items():
            self.assertEqual(seen([result]), seen([wanted[seed]]))
            if (seed + thread) % 3 == 0:
                self.assertIsNone(result.trace)
                continue
            self.assertEqual(len(result.trace.events), len(wanted[seed].trace.events))
            lines = [event["lines"] for event in result.trace.events if "answer" in event]
            self.assertEqual(lines, [event["lines"] for event in wanted[seed].trace.events if "answer" in event])

    def test_of_what_fails(self):
        result, other = sluice.decode(spelling(), [Request(1, prefix=[99], trace=True), Request(1, trace=True)],
                                      Greedy(length=LENGTH), errors="return")
        self.assertEqual(result.failure, "bad_request")
        self.assertEqual(len(other.trace.events) > 3, True)
        self.assertNotIn("end", result.trace.lines)  # it never began
        with sluice.Server(spelling(), Greedy(length=LENGTH), errors="return") as server:
            refused = server.submit(Request(1, prefix=[99], trace=True)).result()
            self.assertEqual(refused.failure, "bad_request")


class Watermarks(unittest.TestCase):
    CASES = json.loads((ORACLES / "watermark.json").read_text())
    SCORES = np.array([[(last + 7) * (token + 3) * 37 % 101 / 33 for token in range(60)] for last in range(60)], np.float32)

    def text(self, search, **request):
        model = sluice.FunctionModel(lambda lists: self.SCORES[[tokens[-1] for tokens in lists]], sluice.Vocabulary(60), batched=True, lookup=3)
        result, = sluice.decode(model, [Request(**request)], search.replace(length=LengthLimits(max=300)))
        return result.tokens

    def test_scores_are_those_of_vllm(self):
        for case in self.CASES["detections"]:
            for scheme in "gumbel", "red_green", "synthid":
                mark = Watermark(scheme=scheme, prf="philox", key=WatermarkKey(int(case["key"])), width=case["width"])
                found = detect_watermark(case["tokens"], mark)
                self.assertEqual(found.scored, case["scored"])
                self.assertEqual(found.scored + found.repeated, found.tokens)
                score, p_value = case[scheme]
                self.assertAlmostEqual(found.score, score, delta=1e-12 * score)
                self.assertAlmostEqual(found.p_value, p_value, delta=1e-6 * p_value)

    def test_tokens_are_those_of_vllm(self):
        """What it draws after a context from given logits."""
        for case in self.CASES["gumbel_tokens"]:
            logits, context = np.array(case["logits"], np.float32), [token for token in case["context"] if token >= 0]
            model = sluice.FunctionModel(lambda tokens: logits, sluice.Vocabulary(len(logits)))
            for prf in "philox", "hmac_sha256":
                mark = Watermark(scheme="gumbel", prf=prf, key=WatermarkKey(int(case["key"])), width=len(case["context"]))
                result, = sluice.decode(model, [Request(prefix=context)],
                                        Sample(watermark=mark, length=LengthLimits(max=len(context) + 1)))
                self.assertEqual(result.tokens, context + [case[prf]])

    def test_what_is_marked_is_found(self):
        searches = [Sample(), Greedy(), BeamSearch(width=3), StochasticBeam(width=2), Blockwise(block=4), ParticleSample(particles=2)]
        for search in searches:
            plain = self.text(search)
            for scheme in "gumbel", "synthid", "red_green", "sbw":
                mark, other = (Watermark(scheme=scheme, key=WatermarkKey(key), prf="philox" if scheme == "sbw" else "sluice")
                               for key in (2026, 2027))
                if scheme in ("gumbel", "synthid") and not isinstance(search, Sample):
                    with self.assertRaisesRegex(sluice.ArgumentError, f"watermark.scheme = {scheme}: draws tokens, which a rule cannot"):
                        self.text(search.replace(watermark=mark))
                    continue
                marked = self.text(search.replace(watermark=mark))
                self.assertLess(detect_watermark(marked, mark).p_value, 1e-6)
                self.assertGreater(detect_watermark(marked, other).p_value, 1e-3)
                self.assertGreater(detect_watermark(plain, mark).p_value, 1e-3)
        self.assertEqual(self.text(Sample(watermark=Watermark())), self.text(Sample()))  # no scheme: no mark
        green = Watermark(scheme="red_green", key=WatermarkKey(1), delta=9)
        self.assertEqual(self.text(Sample(top_k=1, watermark=green)), self.text(Greedy()))  # after its samplers, and not by a rule as well
        blocks = self.text(Blockwise(block=4, watermark=mark))
        self.assertEqual(blocks, self.text(Greedy(watermark=mark)))

    def test_keys_of_requests(self):
        """Each has its own, in one batch, and in a server."""
        model = sluice.FunctionModel(lambda tokens: self.SCORES[tokens[-1]], sluice.Vocabulary(60))
        plain = Sample(length=LengthLimits(max=80))
        marks = [Watermark(scheme="gumbel", key=WatermarkKey(word), width=2) for word in range(1, 5)]
        requests = [Request(search=plain.replace(watermark=mark)) for mark in marks] + [Request()]
        results = sluice.decode(model, requests, plain)
        with sluice.Server(model, plain) as server:
            served = [server.submit(request).result() for request in requests]
        self.assertEqual([r.tokens for r in results], [r.tokens for r in served])
        for i, result in enumerate(results):
            for k, mark in enumerate(marks):
                self.assertEqual(detect_watermark(np.array(result.tokens), mark).p_value < 1e-4, i == k, (i, k))

    def test_masks_and_windows(self):
        mark = Watermark(scheme="red_green", key=WatermarkKey(3), gamma=0.5, delta=4, width=1)
        text = self.text(Greedy(watermark=mark))[:40]
        text += [(i * i * 7 + 3 * i) % 60 for i in range(60)]  # no such text
        found = detect_watermark(text, mark, window=20)
        self.assertEqual([(w.begin, w.end) for w in found.windows], [(i, min(i + 20, 100)) for i in range(0, 81, 10)])
        self.assertEqual(found.windows_p_value, min(1, min(w.p_value for w in found.windows) * len(found.windows)))
        self.assertLess(min(w.p_value for w in found.windows[:2]), min(w.p_value for w in found.windows[4:]))
        masked = detect_watermark(text, mark, mask=np.arange(100) >= 40)
        self.assertEqual((masked.masked, masked.scored + masked.repeated), (60, 40))
        self.assertLess(masked.p_value, found.p_value)
        self.assertEqual(detect_watermark(text, mark, mask=[False] * 100), detect_watermark(text, mark))
        self.assertEqual(detect_watermark([], mark).p_value, 1)

    def test_keys_are_secret(self):
        word = 0x0123456789ABCDEF
        key = WatermarkKey(word)
        mark = Watermark(scheme="gumbel", key=key)
        shown = [repr(key), str(key), f"{key}", repr(mark), repr(Sample(watermark=mark)), repr(vars(key)).replace(str(key._handle), "")]
        with self.assertRaises(TypeError) as raised:
            pickle.dumps(mark)
        shown.append(str(raised.exception))
        for wrong in (lambda: WatermarkKey(word << 64), lambda: WatermarkKey([word] * 33), lambda: WatermarkKey(-word), lambda: WatermarkKey([]),
                      lambda: WatermarkKey.from_bytes(word.to_bytes(9, "little")), lambda: WatermarkKey.from_bytes(b""),
                      lambda: WatermarkKey.write_new("no", 33), lambda: WatermarkKey.write_new("no", 0)):
            with self.assertRaisesRegex(sluice.ArgumentError, "watermark key: ") as raised:
                wrong()
            shown.append(str(raised.exception))
        for wrong in (str(word), [str(word)]):
            with self.assertRaises(TypeError) as raised:
                detect_watermark([1], Watermark(scheme="gumbel", key=wrong))
            shown.append(str(raised.exception))
            with self.assertRaises(TypeError) as raised:
                WatermarkKey([1.5, wrong])
            shown.append(str(raised.exception))
        for text in shown:
            self.assertNotRegex(text.lower(), "81985529216486895|123456789abcdef|efcdab")
        self.assertIs(copy.deepcopy(mark).key, key)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "secret.key")
            file.write_text(f"# of a test\n{word:#x}\n")
            tokens = [i * i % 59 for i in range(200)]
            p_values = {detect_watermark(tokens, mark.__class__(scheme="gumbel", key=one)).p_value
                        for one in (key, WatermarkKey([word]), WatermarkKey.from_bytes(word.to_bytes(8, "little")), WatermarkKey.open(file))}
            self.assertEqual(len(p_values), 1)
            new = pathlib.Path(folder, "new.key")
            made = WatermarkKey.write_new(new, 2)
            self.assertEqual(os.stat(new).st_mode & 0o777, 0o600)
            self.assertEqual(*(detect_watermark(tokens, Watermark(scheme="gumbel", key=one)).p_value for one in (made, WatermarkKey.open(new))))
            with self.assertRaisesRegex(sluice.ArgumentError, "is there already"):
                WatermarkKey.write_new(new)
            with self.assertRaisesRegex(sluice.ArgumentError, "cannot be read"):
                WatermarkKey.open(folder + "/no.key")

    def test_what_is_wrong_is_said(self):
        key, two = WatermarkKey(5), WatermarkKey([5, 6])
        exact = BeamSearch(early_stopping=EarlyStopping(rule="exact"))
        for search, options, message in [
                (Sample(), dict(scheme="gumbel"), "watermark.key = none: is needed to mark and to detect"),
                (Sample(), dict(scheme="gumbel", key=key, width=0), "watermark.width = 0: must be in "),
                (Sample(), dict(scheme="gumbel", key=key, second=0.001), "watermark.second = 0.001"),
                (Sample(), dict(scheme="synthid", key=key, depth=0), "watermark.depth = 0"),
                (Sample(), dict(scheme="synthid", key=key, second=0.5), "watermark.second = 0.500000: is for the scheme gumbel"),
                (Sample(), dict(scheme="red_green", key=key, gamma=0), "watermark.gamma = 0"),
                (Greedy(), dict(scheme="red_green", key=key, delta=0), "watermark.delta = 0"),
                (Greedy(), dict(scheme="red_green", key=two, prf="philox"), "watermark.key: words = 2: must be 1 for the prf philox"),
                (Greedy(), dict(scheme="sbw", key=key), "watermark.prf = sluice: is not defined for the scheme sbw"),
                (Sample(), dict(scheme="blue", key=key), "watermark.scheme = 'blue': must be one of none, gumbel"),
                (Sample(), dict(scheme="gumbel", prf="md5", key=key), "watermark.prf = 'md5': must be one of sluice, philox"),
                (Sample(samples=2), dict(scheme="gumbel", key=key), "samples = 2: would all be the same")]:
            with self.assertRaisesRegex(sluice.ArgumentError, message):
                self.text(search.replace(watermark=Watermark(**options)))
        with self.assertRaisesRegex(sluice.DecodingError, "GreenList, adds to them: stop by another rule"):
            self.text(exact.replace(watermark=Watermark(scheme="red_green", key=key)))
        mark = Watermark(scheme="red_green", key=key)
        for call, kind, message in [
                (lambda: detect_watermark([1], Watermark(key=key)), sluice.ArgumentError, "watermark.scheme = none: must say what to look for"),
                (lambda: detect_watermark([1, -2], mark), sluice.ArgumentError, "token = -2: must not be negative"),
                (lambda: detect_watermark([1, 2], mark, mask=[1]), sluice.ArgumentError, "mask: size = 1: must be that of the text, 2"),
                (lambda: detect_watermark([1, 2], mark, mask=[]), sluice.ArgumentError, "mask: size = 0: must be that of the text, 2"),
                (lambda: detect_watermark([1, 2], mark, window=-1), sluice.ArgumentError, "window = -1"),
                (lambda: detect_watermark([1, 2], None), TypeError, "must be Watermark"),
                (lambda: self.text(Sample(watermark="red_green")), TypeError, "must be Watermark"),
                (lambda: self.text(Sample(watermark=Watermark(scheme="gumbel", key=key, width="4x"))), TypeError, "must be a number")]:
            with self.assertRaisesRegex(kind, message):
                call()


class Suffixes(unittest.TestCase):
    def model(self, **more):
        return TableModel(Table(eos_bias=-9), abilities=ALL, **more)

    def test_what_comes_again_takes_fewer_calls(self):
        for more, options in [({}, {}), (dict(lookup=2), {}), (dict(guess=True), {}),
                              ({}, dict(shortest=2, factor=2.0, least=0, samples=3, own=False))]:
            wanted = sluice.decode(self.model(), range(12), Greedy(length=LENGTH))
            cache, inner = SuffixCache(), self.model(**more)
            memory = sluice.Decoder(WithSuffixCache(inner, cache, **options))
            calls = []
            for _ in range(2):
                before = inner.calls
                results = memory.decode(range(12), Blockwise(block=6, length=LENGTH), batch=1)
                calls.append(inner.calls - before)
                self.assertEqual(seen(results), seen(wanted))
            self.assertLess(2 * calls[1], calls[0] if not more.get("guess") else 2 * calls[0])
            self.assertEqual(cache.texts, 24)
            self.assertFalse(inner.slots)
            for search in Greedy(length=LENGTH), BeamSearch(width=3, length=LENGTH), Sample(length=LENGTH):
                self.assertEqual(seen(memory.decode(range(12), search)), seen(sluice.decode(self.model(), range(12), search)))
            self.assertEqual(cache.texts, 24 + 36)  # of every search

    def test_its_own_text(self):
        """What repeats itself: guessed from the output so far, or not."""
        calls = []

        def turns(lists):
            calls.append(len(lists))
            return np.eye(7)[[tokens[-1] % 3 + 1 for tokens in lists]]

        model = sluice.FunctionModel(turns, sluice.Vocabulary(7, bos=1, eos=0), batched=True)
        for own, least, most in (True, 4, 12), (False, 24, 24):
            calls.clear()
            result, = sluice.decode(WithSuffixCache(model, SuffixCache(), own=own), [None], Blockwise(block=8, length=LengthLimits(max=24)))
            self.assertEqual(result.tokens, [2, 3, 1] * 8)
            self.assertTrue(least <= len(calls) <= most, len(calls))

    def test_what_takes_no_part(self):
        cache, inner = SuffixCache(), self.model()
        memory, search = sluice.Decoder(WithSuffixCache(inner, cache)), Blockwise(block=6, length=LENGTH)
        blocks = lambda results: [r.best.blocks for r in results]
        private = [Request(seed, remember=False) for seed in range(8)]
        empty = blocks(memory.decode(private, search, batch=1))
        self.assertEqual((cache.texts, cache.tokens, repr(cache)), (0, 0, "<SuffixCache of 0 texts, 0 tokens>"))
        memory.decode(range(8), search)
        texts, tokens = cache.texts, cache.tokens
        self.assertEqual(texts, 8)
        self.assertGreater(cache.bytes, tokens)
        self.assertEqual(blocks(memory.decode(private, search, batch=1)), empty)
        self.assertEqual((cache.texts, cache.tokens), (texts, tokens))
        again = blocks(memory.decode(range(8), search, batch=1))
        self.assertLess(sum(map(len, again)) * 2, sum(map(len, empty)))
        with sluice.Server(memory, search) as server:
            mixed = [server.submit(Request(3, remember=i % 3 == 0)) for i in range(9)]
            self.assertEqual({tuple(future.result().tokens) for future in mixed}, {tuple(sluice.decode(self.model(), [3], Greedy(length=LENGTH))[0].tokens)})
        self.assertEqual(cache.texts, 8 + 8 + 3)

    def test_files_and_texts_of_ones_own(self):
        search = Blockwise(block=6, length=LENGTH)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "cache")
            cache, inner = SuffixCache(tokens=5000, longest=8), self.model()
            results = sluice.decode(WithSuffixCache(inner, cache), range(8), search)
            cache.save(file)
            first = inner.calls
            other = SuffixCache()
            other.load(str(file))
            self.assertEqual((other.texts, other.tokens), (cache.texts, cache.tokens))
            inner = self.model()
            self.assertEqual(seen(sluice.decode(WithSuffixCache(inner, other), range(8), search)), seen(results))
            self.assertLess(2 * inner.calls, first + 4)
            other.save(file)  # which is mapped
            file.write_bytes(file.read_bytes()[:-9])
            cut = SuffixCache()
            cut.insert([3, 4], before=[1])
            with self.assertRaisesRegex(sluice.Error, "cache: "):
                cut.load(file)
            self.assertEqual(cut.texts, 1)
            cut.clear()
            self.assertEqual(cut.texts, 0)
            with self.assertRaisesRegex(sluice.Error, "no/such"):
                cut.load("no/such")
        inserted, inner = SuffixCache(), self.model()
        for result in results:
            inserted.insert(np.array(result.tokens))
        self.assertEqual(seen(sluice.decode(WithSuffixCache(inner, inserted), range(8), search)), seen(results))
        self.assertLess(2 * inner.calls, first + 4)

    def test_shared_by_models_and_threads(self):
        cache, search, found = SuffixCache(), Blockwise(block=6, length=LENGTH), {}

        def work(thread):
            memory = sluice.Decoder(WithSuffixCache(self.model(), cache))
            found[thread] = [seen(memory.decode(range(10), search)) for _ in range(3)]

        threads = [threading.Thread(target=work, args=[i]) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wanted = seen(sluice.decode(self.model(), range(10), Greedy(length=LENGTH)))
        self.assertEqual([found[i] for i in range(4)], [[wanted] * 3] * 4)
        self.assertEqual(cache.texts, 120)

    def test_beside_language_models_and_grammars(self):
        cache, inner = SuffixCache(), spelling(abilities=ALL)
        search = Blockwise(length=LENGTH, grammar=sluice.Grammar.regex(r"\[1(,1)*\]"))
        memory = sluice.Decoder(WithSuffixCache(inner, cache))
        wanted = seen(sluice.decode(spelling(), range(6), Greedy(length=LENGTH, grammar=search.grammar)))
        for _ in range(2):
            self.assertEqual(seen(memory.decode(range(6), search)), wanted)
        fused = sluice.Fused(WithSuffixCache(self.model(), cache), self.model(), weight=0.5)
        plain = sluice.Fused(self.model(), self.model(), weight=0.5)
        texts = cache.texts
        self.assertEqual(seen(sluice.decode(fused, range(6), Blockwise(length=LENGTH))), seen(sluice.decode(plain, range(6), Greedy(length=LENGTH))))
        self.assertEqual(cache.texts, texts + 6)

    def test_errors_of_the_model_are_raised(self):
        class Broken(TableModel):
            def step(self, rows):
                raise RuntimeError("no words")

        with self.assertRaisesRegex(RuntimeError, "no words"):
            sluice.decode(WithSuffixCache(Broken(), SuffixCache()), [1])

    def test_what_is_wrong_is_said(self):
        model, cache = self.model(), SuffixCache()
        of_another = SuffixCache()
        of_another.insert([8])
        for make, kind, message in [
                (lambda: SuffixCache(4095), sluice.ArgumentError, "SuffixCache: tokens = 4095: must be from 4096 to 2147483647"),
                (lambda: SuffixCache(0), sluice.ArgumentError, "SuffixCache: tokens = 0"),
                (lambda: SuffixCache(longest=0), sluice.ArgumentError, "SuffixCache: longest = 0: must be from 1 to 256"),
                (lambda: SuffixCache(longest=257), sluice.ArgumentError, "SuffixCache: longest = 257"),
                (lambda: cache.insert([-1]), sluice.ArgumentError, "SuffixCache: token = -1: must not be negative"),
                (lambda: pickle.dumps(cache), TypeError, "cannot be pickled"),
                (lambda: WithSuffixCache(model, model), TypeError, "must be a SuffixCache"),
                (lambda: WithSuffixCache(model, cache, shortest=0), sluice.ArgumentError, "shortest = 0: must be at least 1"),
                (lambda: WithSuffixCache(model, cache, shortest=-1), sluice.ArgumentError, "shortest = -1: must be at least 1"),
                (lambda: WithSuffixCache(model, cache, samples=0), sluice.ArgumentError, "samples = 0: must be at least 1"),
                (lambda: WithSuffixCache(model, cache, factor=0.0), sluice.ArgumentError, "factor = 0.000000: must be a number above 0"),
                (lambda: WithSuffixCache(model, cache, factor=float("nan")), sluice.ArgumentError, "factor = nan: must be a number above 0"),
                (lambda: WithSuffixCache(model, cache, least=-0.5), sluice.ArgumentError, "least = -0.500000: must be from 0 to 1"),
                (lambda: WithSuffixCache(model, of_another), sluice.ArgumentError,
                 r"cache.largest_token\(\) = 8: is outside the vocabulary of 8: the cache is of another model"),
                (lambda: WithSuffixCache("words", cache), TypeError, "model = 'words'")]:
            with self.assertRaisesRegex(kind, message):
                sluice.Decoder(make())
        with self.assertRaisesRegex(sluice.ArgumentError, "roll_back"):
            sluice.decode(WithSuffixCache(TableModel(), cache), [1], Blockwise())
        with self.assertRaises(AttributeError):
            WithSuffixCache(model, cache).token_bytes
        self.assertEqual(WithSuffixCache(model, cache).vocabulary, model.vocabulary)


if __name__ == "__main__":
    unittest.main()
