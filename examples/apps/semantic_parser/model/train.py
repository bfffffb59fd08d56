"""Makes up questions about a shelf of things and their logical forms, and trains a small parser on them: the folder that the tests use.

    python3 examples/apps/semantic_parser/model/train.py      # needs torch; writes manifest.json and weights.f32 beside itself
    python3 examples/apps/semantic_parser/model/reference.py  # then adds what the searches must find

The grammar below is all the data there is. Training stops early, and some words have two meanings, so that beams have something
to weigh. The network is that of Dong and Lapata (2016) as docs/semantic-parser.md has it.
"""
import json, os, random
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
D, LONGEST, TESTS = 24, 60, 60
SPECIAL = ['<S>', '<E>', '<U>']
NOUNS, PLACES = ['book', 'box', 'lamp', 'chair', 'cup', 'coat'], ['top', 'left', 'right', 'lowest']
WORDS = {'red': ['red'], 'blue': ['blue'], 'heavy': ['heavy'], 'old': ['old'], 'light': ['bright', 'light'], 'odd': ['odd', 'single']}


def condition(r, depth):
    kind = r.random()
    if depth > 0 and kind < 0.3:
        word = r.choice(['and', 'or'])
        (a, x), (b, y) = condition(r, depth - 1), condition(r, depth - 1)
        return a + [word] + b, ['(', word] + x + y + [')']
    if kind < 0.45:
        a, x = condition(r, 0)
        return ['not'] + a, ['(', 'not'] + x + [')']
    if kind < 0.6:
        place = r.choice(PLACES)
        return ['on', 'the', place, 'shelf'], ['(', 'shelf', '$0', place, ')']
    if kind < 0.7:
        noun = r.choice(NOUNS)
        return ['older', 'than', 'the', noun], ['(', '>', '(', 'age', '$0', ')', '(', 'age', noun, ')', ')']
    word = r.choice(sorted(WORDS))
    return [word], ['(', r.choice(WORDS[word]), '$0', ')']


def pair(r):
    noun = r.choice(NOUNS)
    words, form = condition(r, 2)
    if r.random() < 0.25:
        return ['how', 'many', noun, 's', 'are'] + words, ['(', 'count', '$0', '(', 'and', '(', noun, '$0', ')'] + form + [')', ')']
    start = r.choice([['which'], ['show', 'me', 'each'], ['list', 'the']])
    return start + [noun, 'that', 'is'] + words, ['(', 'lambda', '$0', '(', 'and', '(', noun, '$0', ')'] + form + [')', ')']


class Side(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.embedding = nn.Embedding(words, D)
        self.lstm = nn.ModuleDict({'i2h': nn.Linear(D, 4 * D), 'h2h': nn.Linear(D, 4 * D)})

    def forward(self, tokens, c, h):
        gates = self.lstm['i2h'](self.embedding(tokens)) + self.lstm['h2h'](h)
        i, f, g, o = gates.chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return c, o.sigmoid() * c.tanh()


class Parser(nn.Module):
    def __init__(self, source_words, target_words):
        super().__init__()
        self.encoder, self.decoder = Side(source_words), Side(target_words)
        self.attention = nn.ModuleDict({'linear_att': nn.Linear(2 * D, D), 'linear_out': nn.Linear(D, target_words)})

    def forward(self, source, target):
        """Log-probabilities of the next token after <S> and each of target; one sentence."""
        c = h = torch.zeros(1, D)
        seen = []
        for token in [0] + source[::-1] + [1]:
            c, h = self.encoder(torch.tensor([token]), c, h)
            seen.append(h)
        seen, lines = torch.cat(seen), []
        for token in [0] + target:
            c, h = self.decoder(torch.tensor([token]), c, h)
            context = (seen @ h[0]).softmax(0) @ seen
            both = torch.cat([context, h[0]])
            lines.append(self.attention['linear_out'](self.attention['linear_att'](both).tanh()))
        return torch.stack(lines).log_softmax(-1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    r = random.Random(1)
    pairs = []
    while len(pairs) < 900:
        p = pair(r)
        if len(p[1]) < 40 and p[0] not in [q[0] for q in pairs]:
            pairs.append(p)
    vocabularies = [SPECIAL + sorted({w for p in pairs for w in p[side]}) for side in (0, 1)]
    ids = [[[v.index(w) for w in p[side]] for side, v in enumerate(vocabularies)] for p in pairs]
    train, tests = ids[TESTS:], ids[:TESTS]
    model = Parser(*map(len, vocabularies))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(4):
        r.shuffle(train)
        total = 0.0
        for start in range(0, len(train), 8):
            batch = train[start:start + 8]
            loss = sum(F.nll_loss(model(source, target), torch.tensor(target + [1])) for source, target in batch) / len(batch)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            total += float(loss.detach()) * len(batch)
        print(f'epoch {epoch + 1}: loss {total / len(train):.3f}', flush=True)
    tensors, blob = {}, b''
    for name, tensor in model.state_dict().items():
        tensors[name] = {'offset': len(blob), 'shape': list(tensor.shape)}
        blob += tensor.numpy().astype('<f4').tobytes()
    with open(os.path.join(HERE, 'weights.f32'), 'wb') as f:
        f.write(blob)
    manifest = {'rnn_size': D, 'dec_seq_length': LONGEST, 'tensors': tensors, 'src_vocab': vocabularies[0],
                'tgt_vocab': vocabularies[1], 'test': [{'src': s, 'ref': t} for s, t in tests]}
    with open(os.path.join(HERE, 'manifest.json'), 'w') as f:
        json.dump(manifest, f)


if __name__ == '__main__':
    main()
