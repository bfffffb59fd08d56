"""Trains a transducer (RNN-T) over the encoder of model.safetensors, which stays as it is: a predictor and a joiner.

    python3 train_rnnt.py encode --minutes 9 --out frames.npz        # pictures of lines.py, as the encoder leaves them
    python3 train_rnnt.py train --frames frames.npz --minutes 30 --out rnnt.safetensors
    python3 train_rnnt.py reference --init rnnt.safetensors --out rnnt-reference.safetensors      # for the test
    python3 train_rnnt.py check                  # the loss beside every alignment of small lattices, and its gradient

Needs what train.py needs, and one core. The predictor is a GRU over the labels before; the joiner adds a linear layer of a frame and one of
the predictor's state, takes the tanh, and a linear layer to the labels. To that it adds the logits that the CTC head has at the frame, a row
of a table for the label before, and to the blank's the probability that the CTC head gives to the label before, times a number. Training
begins with a number and a table that keep a label from being written twice, and so with what the CTC head has learnt. The loss sums the
alignments near that of the CTC head (the BAND numbers of labels around its own at each frame), as pruned RNN-T losses do.
"""
import argparse, itertools, math, os, sys, time
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lines import ALPHABET, DEGREES, degrade, draw, shrink, text
from train import D, LABELS, batch_of, distance, load, normal, save, widen

HERE = os.path.dirname(os.path.abspath(__file__))
E, J, BAND, BEFORE = 64, 128, 5, 2  # of a label, of the joiner; numbers of labels at a frame, and how many of them are less than CTC's
REPEAT, WRITTEN = 4, 12  # nats: what training begins with
NEVER = -1e4  # the logarithm of an arc that is not there


class Encoder(nn.Module):
    """The network of train.py, up to the frames that its CTC head reads, from the weights that ship."""
    def __init__(self, path):
        super().__init__()
        self.t = load(path)
        self.gru = nn.GRU(D, D, bidirectional=True)
        self.gru.load_state_dict({k[4:]: v for k, v in self.t.items() if k.startswith('gru.')})

    def forward(self, x):
        """x: [B, 1, 32, W] -> [W / 4, B, 2 D]"""
        t = self.t
        for i, pool in enumerate([None, (2, 2), None, (2, 1), None]):
            x = F.relu(F.conv2d(x, t[f'conv.{i}.weight'], t[f'conv.{i}.bias'], 2 if i == 0 else 1, 1))
            if pool: x = F.max_pool2d(x, pool)
        x = F.relu(F.linear(x.permute(3, 0, 1, 2).flatten(2).to(t['column.weight'].dtype), t['column.weight'], t['column.bias']))
        return self.gru(x)[0]

    def logits(self, frames): return F.linear(frames, self.t['out.weight'], self.t['out.bias'])


def said(ctc):
    """How probable CTC finds each label at a frame; 0 for the blank."""
    return torch.cat([torch.zeros_like(ctc[..., :1]), ctc.softmax(-1)[..., 1:]], -1)


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.gru = nn.Embedding(LABELS, E), nn.GRU(E, D, batch_first=True)
        self.frame, self.state, self.out = nn.Linear(2 * D, J), nn.Linear(D, J, bias=False), nn.Linear(J, LABELS)
        self.last = nn.Embedding(LABELS, LABELS)
        with torch.no_grad():
            self.out.weight *= 0.1
            self.last.weight.copy_(-REPEAT * torch.eye(LABELS))
            self.last.weight[0, 0] = 0
            self.out.bias[0] = 1
        self.written = nn.Parameter(torch.tensor([float(WRITTEN)]))

    def states(self, labels):
        """[B, U + 1, J] and [B, U + 1, LABELS], of no label (which the blank begins), of one, ...: what the joiner and its result add"""
        labels = F.pad(labels, (1, 0))
        g, _ = self.gru(F.dropout(self.embedding(labels), 0.1, self.training))
        return self.state(F.dropout(g, 0.1, self.training)), self.last(labels)

    def forward(self, frames, ctc, labels, begin):
        """frames: [B, T, 2 D], ctc: [B, T, LABELS], labels: [B, U], begin: [B, T]
        -> logits [B, T, BAND, LABELS] of begin, begin + 1, ... labels"""
        f = self.frame(F.dropout(frames, 0.1, self.training))
        s, last = self.states(labels)
        at = (begin[:, :, None] + torch.arange(BAND)).clamp(max=s.shape[1] - 1)
        flat = at + s.shape[1] * torch.arange(len(s))[:, None, None]
        before = F.pad(labels, (1, 0)).gather(1, at.flatten(1)).view(at.shape)
        logits = self.out(torch.tanh(f[:, :, None] + F.embedding(flat, s.flatten(0, 1)))) + ctc[:, :, None]
        logits = logits + F.embedding(flat, last.flatten(0, 1))
        return torch.cat([logits[..., :1] + (self.written * said(ctc).gather(2, before))[..., None], logits[..., 1:]], -1)


def align(log, labels):
    """The first frame of each label on the likeliest alignment of CTC; None: there is none. log: [T, LABELS]"""
    if len(labels) == 0: return np.zeros(0, int)
    path = np.zeros(2 * len(labels) + 1, int)
    path[1::2] = labels
    leap = np.zeros(len(path), bool)
    leap[2:] = (path[2:] != 0) & (path[2:] != path[:-2])
    best, back = np.full(len(path), -np.inf), np.zeros((len(log), len(path)), np.int8)
    best[:2] = log[0, path[:2]]
    for t in range(1, len(log)):
        one = np.concatenate([[-np.inf], best[:-1]])
        two = np.where(leap, np.concatenate([[-np.inf, -np.inf], best[:-2]]), -np.inf)
        ways = np.stack([best, one, two])
        back[t] = ways.argmax(0)
        best = ways.max(0) + log[t, path]
    s = len(path) - 1 if best[-1] >= best[-2] else len(path) - 2
    if best[s] == -np.inf: return None
    first = np.zeros(len(labels), int)
    for t in range(len(log) - 1, -1, -1):
        if s % 2: first[s // 2] = t
        s -= back[t, s]
    return first


def band(first, frames, labels):
    """begin of Head.forward: of the labels that CTC's alignment has before each frame, BEFORE less."""
    before = np.searchsorted(first, np.arange(frames))
    return np.clip(before - BEFORE, 0, max(0, labels + 1 - BAND))


def sums(blank, label, begin, frames, labels):
    """log p of the labels [B], and how probable each arc is. blank, label: [B, T, K], log-probabilities of the arcs from (t, begin + k): to
    t + 1, and to the next label. Alignments end by the blank of the last frame after the last label."""
    b, t, k = blank.shape
    u = begin[:, :, None] + np.arange(k)
    real = (np.arange(t) < frames[:, None])[:, :, None] & (u <= labels[:, None, None])
    last = (u == labels[:, None, None]) & ((np.arange(t) == frames[:, None] - 1)[:, :, None])
    blank, label = np.where(real, blank, NEVER), np.where(real & (u < labels[:, None, None]), label, NEVER)
    shift = np.diff(begin, axis=1, append=begin[:, -1:])
    there, back = np.arange(k) + shift[:, :, None], np.arange(k) - shift[:, :, None]  # the same number of labels at the next frame
    padded = lambda x: np.pad(x, ((0, 0), (0, 1)), constant_values=2 * NEVER)

    def within(x, arcs):  # y[k] = log(exp x[k] + exp(y[k - 1] + arcs[k - 1]))
        total = np.concatenate([np.zeros((b, 1)), np.cumsum(arcs[:, :-1], 1)], 1)
        return total + np.logaddexp.accumulate(x - total, 1)

    alpha, beta = np.full((b, t, k), 2 * NEVER), np.full((b, t, k), 2 * NEVER)
    first = np.full((b, k), 2 * NEVER)
    first[:, 0] = 0
    for i in range(t):
        if i:
            at = np.where(there[:, i - 1] < k, there[:, i - 1], k)
            first = np.take_along_axis(padded(alpha[:, i - 1] + blank[:, i - 1]), at, 1)
        alpha[:, i] = within(first, label[:, i])
    after = np.full((b, k), 2 * NEVER)
    leave = np.empty_like(blank)  # of the blank, and all that follows
    for i in range(t - 1, -1, -1):
        leave[:, i] = np.where(last[:, i], blank[:, i], after + blank[:, i])
        beta[:, i] = within(leave[:, i, ::-1], np.concatenate([label[:, i, -2::-1], np.full((b, 1), NEVER)], 1))[:, ::-1]
        if i:
            at = np.where((back[:, i - 1] >= 0), back[:, i - 1], k)
            after = np.take_along_axis(padded(beta[:, i]), at, 1)
    log = beta[:, 0, 0]
    arcs = lambda x: np.exp(np.minimum(alpha + x - log[:, None, None], 0)) * real
    return log, arcs(leave), arcs(label + np.concatenate([beta[:, :, 1:], np.full((b, t, 1), 2 * NEVER)], 2))


class Loss(torch.autograd.Function):
    """-log p of the labels, the sum over a batch: logits [B, T, K, LABELS], next [B, T, K]: the label after each number of labels."""
    @staticmethod
    def forward(ctx, logits, next, begin, frames, labels):
        log = logits.log_softmax(-1)
        blank, label = log[..., 0], log.gather(-1, next[..., None])[..., 0]
        total, left, written = sums(blank.double().numpy(), label.double().numpy(), begin.numpy(), frames, labels)
        left, written = torch.from_numpy(left).to(logits.dtype), torch.from_numpy(written).to(logits.dtype)
        grad = log.exp_().mul_((left + written)[..., None])
        grad[..., 0] -= left
        grad.scatter_add_(-1, next[..., None], -written[..., None])
        ctx.save_for_backward(grad)
        return -torch.tensor(total, dtype=logits.dtype).sum()

    @staticmethod
    def backward(ctx, g): return ctx.saved_tensors[0] * g, None, None, None, None


def next_labels(labels, begin, k):
    """[B, T, K]: the label that follows begin + k labels; any, after all"""
    padded = F.pad(labels, (0, 1))
    at = (begin[:, :, None] + torch.arange(k)).clamp(max=padded.shape[1] - 1)
    return padded.gather(1, at.flatten(1)).view(at.shape)


def check(o):
    rng = np.random.default_rng(o.seed)
    worst = 0.0
    for _ in range(40):
        frames, labels = rng.integers(1, 6, 3), rng.integers(0, 5, 3)
        t, k = int(frames.max()), int(labels.max()) + 1
        logits = torch.tensor(rng.normal(size=(3, t, k, 5)), dtype=torch.float64, requires_grad=True)
        y = torch.tensor(rng.integers(1, 5, (3, max(k - 1, 1))))
        begin = torch.zeros((3, t), dtype=torch.long)
        arguments = next_labels(y, begin, k), begin, frames, labels
        found = Loss.apply(logits, *arguments)
        found.backward()
        log, expected = logits.log_softmax(-1), 0.0
        for i in range(3):  # an alignment is how many labels are written at each frame
            ways = []
            for counts in itertools.product(range(labels[i] + 1), repeat=int(frames[i])):
                if sum(counts) != labels[i]: continue
                way, u = 0.0, 0
                for f, count in enumerate(counts):
                    for _ in range(count): way, u = way + log[i, f, u, y[i, u]], u + 1
                    way = way + log[i, f, u, 0]
                ways.append(way)
            expected = expected - torch.stack(ways).logsumexp(0)
        grad, = torch.autograd.grad(expected, logits)
        worst = max(worst, abs(expected.item() - found.item()), (grad - logits.grad).abs().max().item())
    # a band: the arcs outside are not there
    first, labels = np.array([0, 1, 1, 2, 4, 5, 5, 7, 8]), np.array([9])
    t, u = 9, 10
    begin = torch.from_numpy(band(first, t, 9))[None]
    logits = torch.tensor(rng.normal(size=(1, t, u, 5)), dtype=torch.float64)
    y = torch.tensor(rng.integers(1, 5, (1, 9)))
    at = begin[:, :, None] + torch.arange(BAND)
    narrow = Loss.apply(logits.gather(2, at[..., None].expand(-1, -1, -1, 5)), next_labels(y, begin, BAND), begin, np.array([t]), labels)
    log, total = logits[0].log_softmax(-1), {(0, 0): 0.0}
    for f in range(t):
        for n in range(u):
            inside = lambda m, g: int(begin[0, g]) <= m < int(begin[0, g]) + BAND
            if (f, n) not in total or not inside(n, f): continue
            for key, arc in [((f + 1, n), log[f, n, 0])] + ([((f, n + 1), log[f, n, y[0, n]])] if n < 9 else []):
                if key[0] < t and not inside(key[1], key[0]): continue
                total[key] = np.logaddexp(total.get(key, -np.inf), total[(f, n)] + arc.item())
    worst = max(worst, abs(total[(t, 9)] + narrow.item()))
    print('largest difference:', worst)
    sys.exit(worst > 1e-8)


def encode(o):
    """Lines as frames: float16 [sum of T, 2 D]; their labels; begin of their bands."""
    torch.set_num_threads(1)
    encoder, start, said = Encoder(o.encoder), time.time(), time.time()
    frames, labels, first, impossible = [], [], [], 0
    seed = o.seed * 10 ** 7
    while time.time() - start < o.minutes * 60 and sum(map(len, frames)) < o.most_frames:
        x, y, lengths = batch_of(seed, 99, 32)
        seed += 1
        with torch.no_grad():
            with torch.autocast('cpu', torch.bfloat16, enabled=o.bf16):
                h = encoder(normal(x).contiguous(memory_format=torch.channels_last)).float()
            log = encoder.logits(h).log_softmax(-1).numpy()
        end = 0
        for i, n in enumerate(lengths.tolist()):
            mine = y[end:end + n].numpy()
            end += n
            found = align(log[:, i], mine)
            if found is None: impossible += 1; continue
            frames.append(h[:, i].half().numpy()), labels.append(mine.astype(np.int16)), first.append(found.astype(np.int16))
        if time.time() - said > 20:
            said = time.time()
            print(f'{(said - start) / 60:.1f} min, {len(frames)} lines, {impossible} too narrow', flush=True)
    np.savez(o.out, frames=np.concatenate(frames), labels=np.concatenate(labels), first=np.concatenate(first),
             counts=np.array([[len(f), len(l)] for f, l in zip(frames, labels)]))
    print(len(frames), 'lines,', sum(map(len, frames)), 'frames')


def greedy(head, frames, ctc, most=4):
    """frames: [T, 2 D], ctc: [T, LABELS] -> text"""
    f, line, h, label, p = head.frame(frames), '', None, 0, said(ctc)
    step = lambda label, h: head.gru(head.embedding(torch.tensor([[label]])), h)
    g, h = step(0, None)
    for t in range(len(f)):
        for _ in range(most):
            logits = head.out(torch.tanh(f[t] + head.state(g[0, 0]))) + ctc[t] + head.last.weight[label]
            logits[0] += head.written[0] * p[t, label]
            found = logits.argmax().item()
            if found == 0: break
            label = found
            line += ALPHABET[label - 1]
            g, h = step(label, h)
    return line


def held_frames(encoder, count):
    """Of `check` of train.py: (text, frames, logits of CTC) of lines at each degree."""
    all = []
    for degree in DEGREES:
        all.append([])
        for i in range(count):
            rng = np.random.default_rng([99, i])
            line = text(rng, None)
            x = shrink(degrade(rng, draw(rng, line), degree))
            with torch.no_grad(): h = encoder(normal(torch.from_numpy(widen(x, (x.shape[1] + 3) // 4 * 4)))[None, None])
            all[-1].append((line, h[:, 0], encoder.logits(h[:, 0])))
    return all


def train(o):
    torch.set_num_threads(1)
    torch.manual_seed(o.seed)
    rng = np.random.default_rng(o.seed)
    encoder = Encoder(o.encoder)
    data, held = np.load(o.frames), held_frames(encoder, 12)
    frames, labels, first, counts = (data[n] for n in ('frames', 'labels', 'first', 'counts'))
    ends = np.concatenate([[[0, 0]], counts.cumsum(0)])
    head = Head()
    print(sum(p.numel() for p in head.parameters()), 'parameters', flush=True)
    optimiser = torch.optim.AdamW(head.parameters(), lr=o.lr, weight_decay=0.01)
    start = said = kept = time.time()
    steps, passes, mean = 0, 0, 0.0

    def rates():
        head.eval()
        with torch.no_grad():
            found = [sum(distance(line, greedy(head, *h)) for line, *h in lines) / sum(len(line) for line, *_ in lines) for lines in held]
        head.train()
        return ' '.join(f'{100 * x:.1f}' for x in found)

    def batches():
        order = np.argsort(counts[:, 0] + rng.normal(size=len(counts)) * 6, kind='stable')
        at, all = 0, []
        for i, line in enumerate(order):  # as many frames in each
            if i > at and counts[line, 0] * (i + 1 - at) > o.batch: all.append(order[at:i]); at = i
        all.append(order[at:])
        rng.shuffle(all)
        return all

    todo = []
    while True:
        done = (time.time() - start) / 60 / o.minutes
        if done >= 1: break
        if not todo: todo, passes = batches(), passes + 1
        mine = todo.pop()
        n, (t, u) = len(mine), counts[mine].max(0)
        x, y, begin = np.zeros((n, t, 2 * D), np.float16), np.zeros((n, max(u, 1)), int), np.zeros((n, t), int)
        for i, line in enumerate(mine):
            (f0, l0), (f1, l1) = ends[line], ends[line + 1]
            x[i, :f1 - f0], y[i, :l1 - l0] = frames[f0:f1], labels[l0:l1]
            begin[i, :f1 - f0] = band(first[l0:l1], f1 - f0, l1 - l0)
            begin[i, f1 - f0:] = begin[i, f1 - f0 - 1]
        for group in optimiser.param_groups:
            group['lr'] = o.lr * min(1, (steps + 1) / 50) * (0.5 + 0.5 * math.cos(math.pi * done) + 0.01)
        y, begin = torch.from_numpy(y), torch.from_numpy(begin)
        x = torch.from_numpy(x).float()
        with torch.no_grad(): ctc = encoder.logits(x)
        logits = head(x, ctc, y, begin)
        loss = Loss.apply(logits, next_labels(y, begin, BAND), begin, counts[mine, 0], counts[mine, 1]) / counts[mine, 1].sum()
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(head.parameters(), 1)
        optimiser.step()
        steps += 1
        mean = loss.item() if steps == 1 else 0.98 * mean + 0.02 * loss.item()
        now = time.time()
        if now - said > 20:
            said = now
            print(f'{(now - start) / 60:.1f} min, {steps} steps, pass {passes}, nats a character {mean:.4f}', flush=True)
        if now - kept > 300:
            kept = now
            torch.save(head.state_dict(), o.out + '.pt')
            print('characters wrong, %:', rates(), flush=True)
    torch.save(head.state_dict(), o.out + '.pt')
    save(head.state_dict(), {'alphabet': ALPHABET, 'steps': steps}, o.out)
    print('at the end:', steps, 'steps,', passes, 'passes; characters wrong, %:', rates(), flush=True)


def reference(o):
    """Of the picture of reference.safetensors: its text by greedy search, and the joiner's logits along that, in double precision, which the
    C++ program has to find."""
    rng = np.random.default_rng(5)
    x = shrink(degrade(rng, draw(rng, 'Grüße, 12.03.1984'), 'scan'))
    encoder, head = Encoder(o.encoder).double(), Head().double().eval()
    encoder.t = {k: v.double() for k, v in encoder.t.items()}
    head.load_state_dict({k: v.double() for k, v in load(o.init).items()})
    x = normal(torch.from_numpy(widen(x, (x.shape[1] + 3) // 4 * 4))).double()[None, None]
    with torch.no_grad():
        y = encoder(x)[:, 0]
        ctc = encoder.logits(y)
        found = greedy(head, y, ctc)
        labels = torch.tensor([[1 + ALPHABET.index(c) for c in found]])
        f, (s, last) = head.frame(y), head.states(labels)
        at = torch.linspace(0, len(f) - 1, s.shape[1]).long()  # frames that go on as the labels do
        at[0] = ctc[:, 0].argmax()  # a blank's
        logits = head.out(torch.tanh(f[at] + s[0])) + ctc[at] + last[0]
        logits[:, 0] += head.written[0] * said(ctc)[at, F.pad(labels, (1, 0))[0]]
    save({'labels': labels[0], 'frames': at, 'logits': logits}, {'text': found}, o.out, 'F32')
    print(found, tuple(logits.shape))


def export(o):
    head = Head()
    head.load_state_dict(torch.load(o.init))
    save(head.state_dict(), {'alphabet': ALPHABET}, o.out)


if __name__ == '__main__':
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('what', choices=['encode', 'train', 'export', 'reference', 'check'])
    p.add_argument('--encoder', default=f'{HERE}/model.safetensors')
    p.add_argument('--frames', default='frames.npz', help='what encode wrote')
    p.add_argument('--minutes', type=float, default=30)
    p.add_argument('--most-frames', type=int, default=4_000_000, help='encode ends there too')
    p.add_argument('--batch', type=int, default=1000, help='frames in a step')
    p.add_argument('--lr', type=float, default=3e-3)
    p.add_argument('--seed', type=int, default=2)
    p.add_argument('--bf16', action='store_true')
    p.add_argument('--init', help='of export: a checkpoint (.pt); of reference: rnnt.safetensors')
    p.add_argument('--out', default='rnnt.safetensors')
    o = p.parse_args()
    {'encode': encode, 'train': train, 'export': export, 'reference': reference, 'check': check}[o.what](o)
