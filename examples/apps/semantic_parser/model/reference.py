"""Adds to manifest.json what the searches and schedules of VAR-STREAM must find and cost over this folder's model.

    python3 examples/apps/semantic_parser/model/reference.py   # needs numpy; seconds

In double precision, one sentence at a time; the schedules are played afterwards with the widths that each sentence's beam had. The
rules are those of yangkevin2/emnlp2020-stream-beam-semantic@130cc7b (modified attention folder), restated.
"""
import json, os
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, DELTA, CHILDREN, ROWS, BATCH = 10, 10.0, 3, 100, 10  # k, delta, M, rows in a step, n


class Network:
    def __init__(self, manifest, blob):
        self.t = {name: np.frombuffer(blob, '<f4', int(np.prod(t['shape'])), t['offset']).reshape(t['shape']).astype(np.float64)
                  for name, t in manifest['tensors'].items()}

    def cell(self, side, token, c, h):
        t, name = self.t, side + '.lstm.'
        gates = (t[name + 'i2h.weight'] @ t[side + '.embedding.weight'][token] + t[name + 'i2h.bias'] +
                 t[name + 'h2h.weight'] @ h + t[name + 'h2h.bias'])
        i, f, g, o = np.split(gates, 4)
        sigmoid = lambda x: 1 / (1 + np.exp(-x))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return c, sigmoid(o) * np.tanh(c)

    def encode(self, source):
        c = h = np.zeros_like(self.t['encoder.lstm.i2h.bias'][::4])
        seen = []
        for token in [0] + source[::-1] + [1]:
            c, h = self.cell('encoder', token, c, h)
            seen.append(h)
        return np.array(seen), c, h

    def step(self, seen, token, c, h):
        """The state after a token, and the log-probabilities of the next."""
        c, h = self.cell('decoder', token, c, h)
        weights = np.exp(seen @ h - (seen @ h).max())
        both = np.concatenate([weights / weights.sum() @ seen, h])
        t = self.t
        hidden = np.tanh(t['attention.linear_att.weight'] @ both + t['attention.linear_att.bias'])
        logits = t['attention.linear_out.weight'] @ hidden + t['attention.linear_out.bias']
        return (c, h), logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())


def search(network, source, width, children, delta, shrinks, longest):
    """One sentence: its list, best first; the width of its beam at each step, ended hypotheses included, and those not ended.

    shrinks: the leading run of ended candidates is finalised, leaves the beam, and takes its place with it; what is delta below the
    best is dropped. Otherwise what has ended stays, and the end is a beam of nothing else. longest: tokens at most."""
    seen, c, h = network.encode(source)
    live = [(0.0, [], False, (c, h))]
    out, widths, running, best = [], [], [], -np.inf
    while True:
        widths.append(len(live))
        running.append(sum(not ended for _, _, ended, _ in live))
        pool = []
        for total, tokens, ended, (c, h) in live:
            if ended:
                pool.append((total, tokens, True, (c, h)))
                continue
            state, line = network.step(seen, tokens[-1] if tokens else 0, c, h)
            for token in np.argsort(-line, kind='stable')[:children]:
                pool.append((total + line[token], tokens + [int(token)], token == 1, state))
        pool.sort(key=lambda candidate: -candidate[0])
        pool = pool[:width]
        last = len(widths) > longest  # one step more than tokens may come: what it generates is dropped
        if not shrinks:
            live = pool
            if last or all(ended for _, _, ended, _ in live):
                return [tokens[:-1] for _, tokens, _, _ in live], widths, running
            continue
        while pool and pool[0][2]:
            best = max(best, pool[0][0])
            out.append(pool.pop(0))
        live = []
        if pool:
            bar = max(pool[0][0], best) - delta
            live = [candidate for candidate in pool[:max(0, width - len(out))] if candidate[0] > bar]
        over = not live or len(out) >= width
        if over or last:
            if not over:  # cut: the best that has not ended, and what is better
                out = [o for o in out if o[0] > live[0][0]] + live[:1]
            return [tokens[:-1] for _, tokens, _, _ in sorted(out, key=lambda o: -o[0])], widths, running


def batched(sentences, size):
    """Steps of batch after batch: each takes as many as its longest sentence."""
    return sum(max(len(s) for s in sentences[i:i + size]) for i in range(0, len(sentences), size))


def streamed(sentences, shortest_only, most=ROWS):
    """Steps where all sentences are in flight: those with the fewest tokens, or the first of the list, as long as the sum of
    their widths is no more than `most`; the first that does not fit ends the choice. Survivors go back to the front."""
    flight, steps = [[s, 0] for s in sentences], 0
    while flight:
        fewest = min(at for _, at in flight)
        chosen, rows = [], 0
        for one in flight:
            if shortest_only and one[1] != fewest:
                continue
            if chosen and rows + one[0][one[1]] > most:
                break
            rows += one[0][one[1]]
            chosen.append(one)
        others = [one for one in flight if not any(one is c for c in chosen)]
        for one in chosen:
            one[1] += 1
        flight = [one for one in chosen if one[1] < len(one[0])] + others
        steps += 1
    return steps


def main():
    path = os.path.join(HERE, 'manifest.json')
    manifest = json.load(open(path))
    manifest = {k: v for k, v in manifest.items() if not k.startswith(('out_', 'cost_'))}
    network = Network(manifest, open(os.path.join(HERE, 'weights.f32'), 'rb').read())

    def every(*options):
        results = [search(network, pair['src'], *options, manifest['dec_seq_length']) for pair in manifest['test']]
        return [r[0] for r in results], [r[1] for r in results], sum(sum(r[2]) for r in results)

    greedy, greedy_widths, greedy_rows = every(1, 1, np.inf, False)
    fixed, fixed_widths, fixed_rows = every(WIDTH, WIDTH, np.inf, False)
    variable, widths, rows = every(WIDTH, CHILDREN, DELTA, True)
    narrow, narrow_widths, narrow_rows = every(5, 2, 2.5, True)
    manifest.update({
        'out_greedy': greedy, 'cost_greedy': [batched(greedy_widths, BATCH * WIDTH), greedy_rows],
        'out_fixed': fixed, 'cost_fixed': [batched(fixed_widths, BATCH), fixed_rows],
        'out_var_batch': variable, 'cost_var_batch': [batched(widths, BATCH), rows],
        'out_var_stream': variable, 'cost_var_stream': [streamed(widths, True), rows],
        'out_var_fifo': variable, 'cost_var_fifo': [streamed(widths, False), rows],
        'cost_var_stream_20': [streamed(widths, True, 20), rows], 'cost_var_fifo_20': [streamed(widths, False, 20), rows],
        'cost_var_stream_37': [streamed(widths, True, 37), rows],
        'out_narrow': narrow, 'cost_narrow_fifo_50': [streamed(narrow_widths, False, 50), narrow_rows]})
    with open(path, 'w') as f:
        f.write('{\n' + ',\n'.join(json.dumps(k) + ': ' + json.dumps(v, separators=(',', ':')) for k, v in manifest.items()) + '\n}\n')
    right = sum(g[0] == pair['ref'] for g, pair in zip(greedy, manifest['test']))
    anywhere = sum(pair['ref'] in v for v, pair in zip(variable, manifest['test']))
    print({k: v for k, v in manifest.items() if k.startswith('cost_')}, f'{right} right, {anywhere} in the lists, of', len(greedy))


if __name__ == '__main__':
    main()
