"""Trains the reader of lines: the definition of its architecture, on pictures that lines.py makes up.

    python3 train.py train --minutes 45 --out model.safetensors      # goes on from --init, if given
    python3 train.py reference --init model.safetensors --out reference.safetensors   # a picture and its logits, for the test

Needs torch (1.13 or newer) and what lines.py needs; written for one CPU core, and half a core more that makes up pictures. A picture of 32 rows
becomes one frame for each 4 columns: five convolutions, one bidirectional GRU, and log-probabilities over blank (0) and ALPHABET (1...).
"""
import argparse, json, math, os, struct, sys, time
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lines import ALPHABET, DEGREES, HEIGHT, degrade, draw, shrink, text, training_text

CHANNELS, D, LABELS = [24, 32, 64, 64, 96], 128, 1 + len(ALPHABET)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [1, *CHANNELS]
        self.conv = nn.ModuleList(
            nn.Conv2d(sizes[i], sizes[i + 1], *((4, 2, 1) if i == 0 else (3, 1, 1)), bias=False) for i in range(5))
        self.norm = nn.ModuleList(nn.BatchNorm2d(c) for c in CHANNELS)
        self.column, self.gru, self.out = nn.Linear(4 * CHANNELS[-1], D), nn.GRU(D, D, bidirectional=True), nn.Linear(2 * D, LABELS)

    def forward(self, x):
        """x: [B, 1, 32, W], W a multiple of 4 -> logits [W / 4, B, LABELS]."""
        pools = [None, (2, 2), None, (2, 1), None]
        for conv, norm, pool in zip(self.conv, self.norm, pools):
            x = F.relu(norm(conv(x)))
            if pool: x = F.max_pool2d(x, pool)
        x = x.permute(3, 0, 1, 2).flatten(2).float()  # [T, B, 96 * 4]
        x = F.relu(self.column(x))
        x, _ = self.gru(F.dropout(x, 0.1, self.training))
        return self.out(x)


def normal(x):
    """uint8 [.., 32, W] -> float32: less its mean, over its deviation."""
    x = x.float()
    mean = x.mean((-2, -1), keepdim=True)
    return (mean - x) / ((x - mean).square().mean((-2, -1), keepdim=True).sqrt() + 8)


def widen(x, width):
    """To `width` columns: the last one again and again."""
    return np.pad(x, ((0, 0), (0, width - x.shape[1])), 'edge')


def batch_of(seed, minutes_done, size):
    """A batch: short and easy lines at first; later all lengths, and the worse degrees more often."""
    rng = np.random.default_rng(seed)
    ease = min(1.0, minutes_done / 3)
    length = int(rng.integers(5, 9 + int(40 * ease)))
    weights = np.array([[0.7, 0.3, 0, 0], [0.12, 0.25, 0.28, 0.35]])
    weights = weights[0] * (1 - ease) + weights[1] * ease
    lines, pictures = [], []
    for _ in range(max(8, int(size * 24 / (length + 6)))):
        line = training_text(rng, length)
        lines.append(line)
        pictures.append(shrink(degrade(rng, draw(rng, line), DEGREES[rng.choice(4, p=weights)])))
    wide = (max(p.shape[1] for p in pictures) + 3) // 4 * 4
    return (torch.from_numpy(np.stack([widen(p, wide) for p in pictures]))[:, None],
            torch.tensor([1 + ALPHABET.index(c) for line in lines for c in line]), torch.tensor([len(l) for l in lines]))


def generate(seed, size, start, queue):
    torch.set_num_threads(1)
    os.nice(1)
    while True:
        queue.put(batch_of(seed, (time.time() - start) / 60, size))
        seed += 1


def best_path(logits):
    texts = []
    for labels in logits.argmax(-1).T.tolist():
        texts.append(''.join(ALPHABET[l - 1] for i, l in enumerate(labels) if l and (i == 0 or l != labels[i - 1])))
    return texts


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row, old = [i], row
        for j, y in enumerate(b, 1): row.append(min(old[j] + 1, row[-1] + 1, old[j - 1] + (x != y)))
    return row[-1]


def check(model, count=12):
    """Character error rate of the best path at each degree, in percent."""
    model.eval()
    rates = []
    for degree in DEGREES:
        wrong = total = 0
        for i in range(count):
            rng = np.random.default_rng([99, i])
            line = text(rng, None)
            x = shrink(degrade(rng, draw(rng, line), degree))
            with torch.no_grad(), torch.autocast('cpu', torch.bfloat16):
                found = best_path(model(normal(torch.from_numpy(widen(x, (x.shape[1] + 3) // 4 * 4)))[None, None]))[0]
            wrong, total = wrong + distance(line, found), total + len(line)
        rates.append(f'{100 * wrong / total:.1f}')
    model.train()
    return ' '.join(rates)


def folded(model):
    """The tensors that ship: each batch norm is part of the convolution before it; the pixel's scale is as it was."""
    tensors = {}
    for i, (conv, norm) in enumerate(zip(model.conv, model.norm)):
        scale = norm.weight / (norm.running_var + norm.eps).sqrt()
        tensors[f'conv.{i}.weight'] = conv.weight * scale[:, None, None, None]
        tensors[f'conv.{i}.bias'] = norm.bias - norm.running_mean * scale
    for name, tensor in model.state_dict().items():
        if name.split('.')[0] in ('column', 'gru', 'out'): tensors[name] = tensor
    return tensors


def save(tensors, metadata, path, kind='F16'):
    header, blobs, at = {'__metadata__': {k: str(v) for k, v in metadata.items()}}, [], 0
    for name, t in tensors.items():
        b = t.detach().float().numpy().astype({'F16': np.float16, 'F32': np.float32}[kind]).tobytes()
        header[name] = {'dtype': kind, 'shape': list(t.shape), 'data_offsets': [at, at + len(b)]}
        at += len(b)
        blobs.append(b)
    h = json.dumps(header).encode()
    h += b' ' * (-len(h) % 8)
    with open(path + '.part', 'wb') as f: f.write(struct.pack('<Q', len(h)) + h + b''.join(blobs))
    os.replace(path + '.part', path)


def train(o):
    import torch.multiprocessing as mp
    torch.set_num_threads(1)
    torch.manual_seed(o.seed)
    model = Reader()
    model = model.to(memory_format=torch.channels_last)
    if o.init: model.load_state_dict(torch.load(o.init))
    optimiser = torch.optim.AdamW(model.parameters(), lr=o.lr, weight_decay=0.01)
    queue, start = mp.Queue(12), time.time()
    for i in range(o.makers):
        mp.Process(target=generate, args=(o.seed * 10 ** 7 + i * 10 ** 6, o.batch, start - 60 * (99 if o.init else 0), queue), daemon=True).start()
    steps, mean, said, kept = 0, 0.0, start, start
    while True:
        done = (time.time() - start) / 60 / o.minutes
        if done >= 1: break
        for group in optimiser.param_groups:
            group['lr'] = o.lr * min(1, (steps + 1) / 100) * (0.5 + 0.5 * math.cos(math.pi * done) + 0.01)
        x, targets, lengths = queue.get()
        x = normal(x).contiguous(memory_format=torch.channels_last)
        with torch.autocast('cpu', torch.bfloat16, enabled=o.bf16): logits = model(x)
        log = logits.float().log_softmax(-1)
        loss = F.ctc_loss(log, targets, torch.full((x.shape[0],), len(log)), lengths, zero_infinity=True)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5)
        optimiser.step()
        steps += 1
        mean = loss.item() if steps == 1 else 0.98 * mean + 0.02 * loss.item()
        now = time.time()
        if now - said > 20:
            said = now
            print(f'{(now - start) / 60:.1f} min, {steps} steps, loss {mean:.3f}, queue {queue.qsize()}', flush=True)
        if now - kept > 240 or o.minutes * 60 - (now - start) < 2 and kept < now - 20:
            kept = now
            torch.save(model.state_dict(), o.out + '.pt')
            print('characters wrong, %:', check(model), flush=True)
    torch.save(model.state_dict(), o.out + '.pt')
    save(folded(model), {'alphabet': ALPHABET, 'height': HEIGHT, 'steps': steps}, o.out)
    print('at the end:', steps, 'steps; characters wrong, %:', check(model, 200), flush=True)
    os._exit(0)


def load(path):
    blob = open(path, 'rb').read()
    n = struct.unpack('<Q', blob[:8])[0]
    return {k: torch.from_numpy(np.frombuffer(blob, np.float16, offset=8 + n + e['data_offsets'][0], count=math.prod(e['shape']))
                                .astype(np.float32).reshape(e['shape']))
            for k, e in json.loads(blob[8:8 + n]).items() if k != '__metadata__'}


def reference(o):
    """A picture and its logits, of the weights that ship, in double precision: what the C++ program has to find."""
    rng = np.random.default_rng(5)
    x = shrink(degrade(rng, draw(rng, 'Grüße, 12.03.1984'), 'scan'))
    t = {k: v.double() for k, v in load(o.init).items()}
    y = normal(torch.from_numpy(widen(x, (x.shape[1] + 3) // 4 * 4))).double()[None, None]
    for i, pool in enumerate([None, (2, 2), None, (2, 1), None]):
        y = F.relu(F.conv2d(y, t[f'conv.{i}.weight'], t[f'conv.{i}.bias'], 2 if i == 0 else 1, 1))
        if pool: y = F.max_pool2d(y, pool)
    gru = nn.GRU(D, D, bidirectional=True).double()
    gru.load_state_dict({k[4:]: v for k, v in t.items() if k.startswith('gru.')})
    y = F.relu(F.linear(y.permute(3, 0, 1, 2).flatten(2), t['column.weight'], t['column.bias']))
    with torch.no_grad(): y = F.linear(gru(y)[0], t['out.weight'], t['out.bias'])
    save({'picture': torch.from_numpy(x.copy()), 'logits': y[:, 0]}, {'text': best_path(y)[0]}, o.out, 'F32')
    print(best_path(y)[0], tuple(y.shape))


def export(o):
    model = Reader()
    model.load_state_dict(torch.load(o.init))
    save(folded(model), {'alphabet': ALPHABET, 'height': HEIGHT}, o.out)


if __name__ == '__main__':
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('what', choices=['train', 'export', 'reference'])
    p.add_argument('--minutes', type=float, default=45)
    p.add_argument('--batch', type=int, default=32, help='lines of 18 characters in a step; fewer if they are longer')
    p.add_argument('--lr', type=float, default=2e-3)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--makers', type=int, default=1, help='processes that make up pictures')
    p.add_argument('--bf16', action='store_true')
    p.add_argument('--init', help='a checkpoint (.pt) to go on from')
    p.add_argument('--out', default='model.safetensors')
    o = p.parse_args()
    {'train': train, 'export': export, 'reference': reference}[o.what](o)
