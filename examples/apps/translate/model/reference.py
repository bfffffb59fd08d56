"""Decodes sample.de by train.py's own definition of the model, with searches written down plainly: what the C++ must find.

    python3 examples/apps/translate/model/reference.py >tests/references/sample.json

Needs torch (1.13 or newer) and sentencepiece (Debian: python3-torch python3-sentencepiece); 6 minutes of one core. The weights are
the shipped halves, widened to float32. Everything is done again in double precision, and a sentence whose lists are then others is
named: a program that adds in another order may rightly differ there.

Beam search is fairseq's rule (facebookresearch/fairseq@3d262bb, sequence_generator.py, search.py): of the 2k best candidates, those
that are eos and among the first k are finished, the first k others go on; the end is k finished ones; score = log-probability over
length, eos counted. Under constraints it is that of its LexicallyConstrainedBeamSearch with `unordered` constraints.
"""
import json, os, random, sys
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import train
from train import BOS, EOS, PAD

K, LONGEST = 5, 100  # width of the beams; tokens generated at most, eos included


class Lines:
    """Log-probabilities of one sentence: of the next token after each of some outputs."""

    def __init__(self, model, source):
        self.model = model
        with torch.no_grad():
            self.memory, self.mask = model.encode(torch.tensor([source + [EOS]]))

    def hidden(self, outputs):
        y = torch.tensor([[BOS] + o for o in outputs])
        with torch.no_grad():
            return self.model.decode(y, self.memory.expand(len(outputs), -1, -1), self.mask)

    def __call__(self, outputs):
        with torch.no_grad():
            lines = self.model.logits(self.hidden(outputs)[:, -1]).log_softmax(-1)
        lines[:, [PAD, BOS]] = -float('inf')
        return lines


def greedy(lines):
    tokens, gains = [], []
    while len(tokens) < LONGEST and (not tokens or tokens[-1] != EOS):
        line = lines([tokens])[0]
        tokens.append(int(line.argmax()))
        gains.append(float(line[tokens[-1]]))
    return {'tokens': tokens, 'log_probs': gains}


class Free:
    """No constraints."""
    bank, finished, wanted = 0, True, ()

    def after(self, token):
        return self


class Unordered:
    """fairseq's UnorderedConstraintState: the phrases as a trie; how often each of its nodes was passed, and each end met.

    What breaks off is taken back up to the longest phrase that it completed; the token that broke it off begins anew only where the
    counts from before that allow it."""

    def __init__(self, phrases=None, trie=None, node=(), passed=None, met=None):
        if trie is None:
            trie = {}  # beginning -> [phrases that go through it, phrases that end there]
            for phrase in phrases:
                for n in range(len(phrase) + 1):
                    trie.setdefault(tuple(phrase[:n]), [0, 0])[0] += 1
                trie[tuple(phrase)][1] += 1
        self.trie, self.node, self.passed, self.met = trie, node, passed or {}, met or {}

    def ends_open(self, node):
        return self.trie[node][1] - self.met.get(node, 0)

    @property
    def bank(self):
        return sum(self.passed.values())

    @property
    def finished(self):
        here = self.node and self.ends_open(self.node) > 0
        return sum(self.met.values()) + bool(here) == self.trie[()][0]

    @property
    def wanted(self):
        return {b[-1] for b in self.trie if b and b[:-1] in ((), self.node)}

    def after(self, token):
        passed, met = dict(self.passed), dict(self.met)
        fits = lambda node: node in self.trie and self.passed.get(node, 0) < self.trie[node][0]
        further, anew = self.node + (token,), (token,)
        node = further if fits(further) else anew if fits(anew) else ()
        if node:
            passed[node] = passed.get(node, 0) + 1
        if not (node == further and fits(further)):
            for n in range(len(self.node), 0, -1):
                if self.ends_open(self.node[:n]) > 0:
                    met[self.node[:n]] = met.get(self.node[:n], 0) + 1
                    break
                passed[self.node[:n]] -= 1
        return Unordered(trie=self.trie, node=node, passed=passed, met=met)


def beam(lines, state):
    live, finished = [([], [], 0.0, state)], []  # tokens, their log-probabilities, the sum, the constraints' state
    for length in range(1, LONGEST + 1):
        table = lines([tokens for tokens, *_ in live])
        for row, (_, _, _, at) in enumerate(live):
            if length == 1 or not at.finished:
                table[row, EOS] = -float('inf')
            if length == LONGEST:
                table[row, :EOS] = table[row, EOS + 1:] = -float('inf')
        sums = table + torch.tensor([[total] for _, _, total, _ in live], dtype=table.dtype)
        places = {divmod(int(i), table.shape[1]) for i in sums.flatten().topk(2 * K).indices}
        if not isinstance(state, Free):
            places |= {(row, int(table[row].argmax())) for row in range(len(live))}
            places |= {(row, token) for row, (_, _, _, at) in enumerate(live) for token in at.wanted}
        candidates = [(float(sums[place]), place, live[place[0]][3].after(place[1])) for place in places
                      if sums[place] > -float('inf')]
        candidates.sort(key=lambda c: (-c[0], c[1]))
        turn, counts = {}, {}  # the best of each bank, then the second best of each, the fullest bank first
        for c in candidates:
            turn[c[1]] = counts[c[2].bank] = counts.get(c[2].bank, -1) + 1
        candidates.sort(key=lambda c: (turn[c[1]], -c[2].bank))
        following = []
        for rank, (total, (row, token), after) in enumerate(candidates[:2 * K]):
            tokens, gains = live[row][0] + [token], live[row][1] + [float(table[row, token])]
            if token != EOS:
                following.append((tokens, gains, total, after))
            elif rank < K and len(finished) < K:
                finished.append({'tokens': tokens, 'log_probs': gains, 'score': total / length})
        live = following[:K]
        if len(finished) == K or not live:
            break
    return sorted(finished, key=lambda h: -h['score'])


def phrases_for(index, reference):
    """One to three pieces of the sentence's own translation, once or twice."""
    choose = random.Random(index)
    phrases = []
    for _ in range(1 + index % 2):
        size = choose.randint(1, min(3, len(reference)))
        at = choose.randrange(len(reference) - size + 1)
        phrases.append(reference[at:at + size])
    return phrases


def check(lines, index, target):
    """Hidden vectors of the first steps, and the best five tokens of each with their log-probabilities."""
    hidden = lines.hidden([target])[0]
    best = lines.model.logits(hidden).log_softmax(-1).topk(5)
    return {'sentence': index, 'target': [BOS] + target, 'hidden': hidden.tolist(),
            'top5': [[[int(t), float(p)] for p, t in zip(*step)] for step in zip(best.values, best.indices)]}


def decode(model, sources, references):
    sentences, checks = [], []
    for index, (source, reference) in enumerate(zip(sources, references)):
        lines, phrases = Lines(model, source), phrases_for(index, reference)
        sentences.append({'source': source, 'greedy': greedy(lines), 'beam': beam(lines, Free()), 'constraints': phrases,
                          'constrained': beam(lines, Unordered(phrases))})
        if index % 20 == 7:
            checks.append(check(lines, index, sentences[-1]['greedy']['tokens'][:3]))
        print(f'\r{index + 1} of {len(sources)}', end='', file=sys.stderr)
    print(file=sys.stderr)
    return sentences, checks


def rounded(x):
    if isinstance(x, float):
        return round(x, 6)
    if isinstance(x, dict):
        return {k: rounded(v) for k, v in x.items()}
    return [rounded(v) for v in x] if isinstance(x, list) else x


def hypotheses(sentence):
    return [sentence['greedy']] + sentence['beam'] + sentence['constrained']


def main():
    torch.set_num_threads(1)
    pieces = train.spm.SentencePieceProcessor(model_file=os.path.join(HERE, 'spm.model'))
    sources, references = (pieces.encode(train.read(os.path.join(HERE, '..', 'sample.' + side))) for side in ('de', 'en'))
    model = train.Model()
    train.load(model, os.path.join(HERE, 'model.safetensors'))
    model.eval()
    sentences, checks = decode(model, sources, references)
    largest = 0.0
    for index, (a, b) in enumerate(zip(sentences, decode(model.double(), sources, references)[0])):
        if [h['tokens'] for h in hypotheses(a)] != [h['tokens'] for h in hypotheses(b)]:
            print(f'sentence {index}: other lists in double precision', file=sys.stderr)
            continue
        for x, y in zip(hypotheses(a), hypotheses(b)):
            largest = max([largest] + [abs(p - q) for p, q in zip(x['log_probs'], y['log_probs'])])
    print(f'log-probabilities differ from double precision by {largest:.1e} at most', file=sys.stderr)
    out = {'made_by': 'examples/apps/translate/model/reference.py', 'width': K, 'longest': LONGEST}
    # A sentence a line.
    print(json.dumps(out)[:-1] + ', "sentences": [\n' +
          ',\n'.join(json.dumps(rounded(s), separators=(',', ':')) for s in sentences) + '\n], "checks": [\n' +
          ',\n'.join(json.dumps(rounded(c), separators=(',', ':')) for c in checks) + '\n]}')


if __name__ == '__main__':
    main()
