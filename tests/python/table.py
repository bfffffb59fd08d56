# SPDX-License-Identifier: Apache-2.0
"""The table of tests/oracles/README.md as a model: its logits are a hash of the source and the tokens so far."""
import itertools
import math

import numpy as np

import sluice

PAD, BOS, EOS = 0, 1, 2
MASK = 2**64 - 1


def mix(z):
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 & MASK
    z ^= z >> 27
    z = z * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


class Table:
    """Distributions of one table, in double precision."""

    def __init__(self, V=8, scale=8.0, eos_bias=-1.0, eos_slope=0.5, order=-1):
        assert order == -1
        self.V, self.scale, self.eos_bias, self.eos_slope = V, scale, eos_bias, eos_slope
        self._lines = {}

    def logits(self, seed, context):
        key = (seed, *context)
        if key not in self._lines:
            h = mix(seed + 0x9E3779B97F4A7C15 & MASK)
            for token in context:
                h = mix(h ^ ((token + 1) * 0x9E3779B97F4A7C15 & MASK))
            line = np.full(self.V, -np.inf)
            for v in range(2, self.V):
                line[v] = self.scale * ((mix(h ^ ((v + 1) * 0xD1B54A32D192ED03 & MASK)) >> 40) / 16777216.0)
            line[EOS] += self.eos_bias + self.eos_slope * len(context)
            self._lines[key] = line
        return self._lines[key]

    def log_probs(self, seed, context):
        line = self.logits(seed, context)
        return line - np.log(np.sum(np.exp(line)))

    def outputs(self, seed, longest):
        """Every output of at most `longest` tokens that ends with eos, and its log-probability."""
        for length in range(longest):
            for tokens in itertools.product(range(3, self.V), repeat=length):
                tokens += (EOS,)
                yield tokens, sum(self.log_probs(seed, tokens[:i])[t] for i, t in enumerate(tokens))


class TableModel:
    """A table that keeps its slots; what it may be asked is checked against what it claims."""

    def __init__(self, table=None, kind="logits", abilities=sluice.Abilities(), guess=False, lookup=0, limits=sluice.Limits(512, 64)):
        self.table = table or Table()
        self.vocabulary = sluice.Vocabulary(self.table.V, BOS, EOS, [PAD, BOS])
        self.kind, self.abilities, self.limits, self.lookup = kind, abilities, limits, lookup
        self.slots, self.calls, self.released, self.guessed = {}, 0, 0, 0
        if guess:
            self.propose = self.guesses

    def start(self, sources, slots):
        for source, slot in zip(sources, slots):
            self.slots[slot] = source, []

    def step(self, rows):
        self.calls += 1
        claims = self.abilities
        before = {row.from_: self.slots[row.from_] for row in rows}
        answers = []
        for row in rows:
            source, held = before[row.from_]
            assert row.length <= len(held) and row.lines >= 1
            assert claims.roll_back or row.length == len(held)
            assert claims.blocks or len(row.tokens) == row.lines == 1
            tokens = held[:row.length] + row.tokens
            self.slots[row.to] = source, tokens
            for end in range(len(tokens) - row.lines + 1, len(tokens) + 1):
                answers.append(self.line(source, tokens[:end]))
        assert claims.ragged or len({(row.length, len(row.tokens)) for row in rows}) == 1
        return np.array(answers, np.float32)

    def line(self, source, tokens):
        context = tokens[1:] if tokens[0] == BOS else tokens
        return (self.table.log_probs if self.kind == "log_probs" else self.table.logits)(source, context)

    def release(self, slots):
        self.released += len(slots)
        for slot in slots:
            del self.slots[slot]

    def guesses(self, drafts):
        """The most probable tokens, but for every fourth."""
        made = []
        for draft in drafts:
            source, held = self.slots[draft.slot]
            tokens, guesses = held[:draft.length] + draft.pending, []
            for _ in range(draft.wanted):
                self.guessed += 1
                best = int(np.argmax(self.line(source, tokens)))
                guesses.append(best if self.guessed % 4 else 3)
                tokens = tokens + guesses[-1:]
            made.append(guesses)
        return made


def huggingface(table, seed, k, longest, power=1.0, early=False, count=1, minimum=0):
    """transformers' beam search, written again for one sentence: k running beams, a pool of the k best finished ones."""
    running, pool = [((), 0.0)], []
    for length in range(1, longest + 1):
        cells = []
        for rank, (tokens, total) in enumerate(running):
            line = np.array(table.log_probs(seed, tokens))
            if length <= minimum:
                line[EOS] = -np.inf
            cells += [(-(total + line[v]), rank, v) for v in range(table.V) if line[v] > -np.inf]
        cells = sorted(cells)[:2 * k]
        ended = [(running[r][0] + (v,), -cost) for cost, r, v in cells[:k] if v == EOS]
        going = [(running[r][0] + (v,), -cost) for cost, r, v in cells if v != EOS][:k]
        if length == longest:
            ended += going
        pool = sorted(pool + [(total / length**power, tokens) for tokens, total in ended], key=lambda one: -one[0])[:k]
        running = going
        if not running or length == longest:
            break
        full = len(pool) == k
        if early is True and full:
            break
        if full and early is False and running[0][1] / length**power <= pool[-1][0]:
            break
        if full and early == "never" and running[0][1] / (longest if power > 0 else length)**power <= pool[-1][0]:
            break
    return pool[:count]


def exact(table, seed, longest, score=lambda log_prob, length: log_prob / length, allowed=lambda tokens: True):
    """The best output by enumeration: (score, tokens)."""
    best = (-math.inf, ())
    for tokens, log_prob in table.outputs(seed, longest):
        if allowed(tokens):
            best = max(best, (score(log_prob, len(tokens)), tokens))
    return best
