# SPDX-License-Identifier: Apache-2.0
"""Outputs end at their stops, as a search through the text finds them; a trace says what was done, and changes nothing."""
import json
import threading
import unittest

import numpy as np

import sluice
from sluice import BeamSearch, Blockwise, Greedy, LengthLimits, Request, Sample, StochasticBeam
from table import EOS, Table, TableModel
from test_decoding import ALL, LENGTH, TEXTS, seen


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
                (Greedy(stop_tokens=[[3]], stop_minimum=-1), sluice.ArgumentError, "stops.minimum = -1")]:
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


if __name__ == "__main__":
    unittest.main()
