"""Trains the super-resolution model and its heads: the definition of its architecture, on images that images.py makes up.

    python3 train.py samples                                                # samples.pgm: 32 images of a seed of their own
    python3 train.py model --minutes 35                                      # model.safetensors
    python3 train.py images --count 1300 --seed 3 --out more.pgm
    super_resolution --model . --input more.pgm --output more                # more/greedy.pgm
    python3 train.py heads --input more.pgm --decoded more/greedy.pgm --minutes 10      # heads.safetensors

Needs torch (1.13 or newer); written for one CPU core with bfloat16. Tokens are the intensities 0 to 255 and BOS; the source is the
small image, interpolated to 16 x 16 pixels so that its places are those of the target, row by row, and BOS as its end; the target
is the large image behind a BOS.
"""
import argparse, json, math, os, struct, sys, time
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from images import SIZE, enlarge, generate, read_pgm, shrink, turned, write_pgm

D, FF, H, NE, ND, V, BOS = 128, 512, 4, 1, 2, 257, 256
PLACE = D // 2  # channels whose sinusoids tell places in an image apart; the others are slow, so intensities begin there
LENGTH, PART = SIZE * SIZE, 64


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x, memory, causal=None):
        B, T, _ = x.shape
        heads = lambda y: y.view(B, -1, H, D // H).transpose(1, 2)
        q, k, v = heads(self.q(x) * (D // H) ** -0.5), heads(self.k(memory)), heads(self.v(memory))
        if causal is None:
            a = (q @ k.transpose(2, 3)).softmax(-1) @ v
        else:  # in four parts, none of which looks at what lies behind it
            a = torch.cat([((q[:, :, i:i + PART] @ k[:, :, :i + PART].transpose(2, 3)).add_(causal[i:i + PART, :i + PART])
                            .softmax(-1) @ v[:, :, :i + PART]) for i in range(0, T, PART)], 2)
        return self.o(a.transpose(1, 2).reshape(B, T, D))

    @torch.no_grad()
    def look_back(self, distances):
        """Has each head look so many places back, to begin with: a turn of the sinusoids."""
        size = D // H
        for head, distance in enumerate(distances):
            for i in range(0, size, 2):
                channel = i // 2 * (PLACE // size) * 2
                angle = distance / 10000 ** (channel / D)
                row = head * size + i
                for weight, turn in (self.q.weight, angle), (self.k.weight, 0.0):
                    weight[row:row + 2] = 0
                    weight[row, channel:channel + 2] = 5 * torch.tensor([math.cos(turn), -math.sin(turn)])
                    weight[row + 1, channel:channel + 2] = 5 * torch.tensor([math.sin(turn), math.cos(turn)])


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.i, self.o = nn.Linear(D, FF), nn.Linear(FF, D)

    def forward(self, x):
        return self.o(F.relu(self.i(x)))


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.a, self.n2, self.f = nn.LayerNorm(D), Attention(), nn.LayerNorm(D), FeedForward()

    def forward(self, x):
        n = self.n1(x)
        x = x + self.a(n, n)
        return x + self.f(self.n2(x))


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.a, self.n2, self.c = nn.LayerNorm(D), Attention(), nn.LayerNorm(D), Attention()
        self.n3, self.f = nn.LayerNorm(D), FeedForward()

    def forward(self, x, memory, causal):
        n = self.n1(x)
        x = x + self.a(n, n, causal)
        x = x + self.c(self.n2(x), memory)
        return x + self.f(self.n3(x))


def sinusoid(n):
    a = torch.arange(n)[:, None].float() / torch.pow(10000, torch.arange(0, D, 2).float() / D)
    t = torch.zeros(n, D)
    t[:, 0::2], t[:, 1::2] = a.sin(), a.cos()
    return t


def intensities():
    """Vectors of length 1 that are near for near intensities: waves of 4 to 1/40 of the range, in the slow channels."""
    table = torch.zeros(V, D)
    waves = torch.arange(256)[:, None] / 256 * 2 * math.pi * torch.logspace(math.log10(0.25), math.log10(40), (D - PLACE) // 2)
    table[:256, PLACE::2], table[:256, PLACE + 1::2] = waves.sin(), waves.cos()
    table[BOS, PLACE:] = torch.randn(D - PLACE)
    return table / table.norm(dim=1, keepdim=True)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, D)
        self.bias = nn.Parameter(torch.zeros(V))
        self.enc = nn.ModuleList(EncoderLayer() for _ in range(NE))
        self.dec = nn.ModuleList(DecoderLayer() for _ in range(ND))
        self.en, self.dn = nn.LayerNorm(D), nn.LayerNorm(D)
        self.register_buffer('pos', sinusoid(LENGTH + 1), persistent=False)
        self.register_buffer('causal', torch.full((LENGTH, LENGTH), -1e9).triu(1).bfloat16(), persistent=False)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.xavier_uniform_(p)
        self.emb.weight.data = intensities()
        # To begin with, heads look at the pixel before, at those above, and at those of the source here and around.
        self.enc[0].a.look_back([1, -1, SIZE, -SIZE])
        self.dec[0].a.look_back([0, SIZE - 1, SIZE - 2, SIZE])
        self.dec[1].a.look_back([0, 1, SIZE - 1, 2 * SIZE - 1])
        self.dec[0].c.look_back([0, -2, -2 * SIZE, -2 * SIZE - 2])
        self.dec[1].c.look_back([0, -1, -SIZE, 1])
        for layer in [*self.enc, *self.dec]:
            for part in [layer.a.o, layer.f.o] + ([layer.c.o] if hasattr(layer, 'c') else []):
                part.weight.data *= 0.5

    def embed(self, x):
        return self.emb(x) * math.sqrt(D) + self.pos[: x.shape[1]]

    def forward(self, source, target):
        """The hidden vectors behind each token of `target`, [B, T, D]."""
        h = self.embed(source)
        for layer in self.enc:
            h = layer(h)
        memory, h, T = self.en(h), self.embed(target), target.shape[1]
        for layer in self.dec:
            h = layer(h, memory, self.causal[:T, :T])
        return self.dn(h)

    def logits(self, h):
        return h @ self.emb.weight.T + self.bias


def tokens(originals, targets=None):
    """Source with its end, target behind its BOS, and what comes behind each of its tokens."""
    whole = lambda images: torch.from_numpy(images.reshape(len(images), -1).astype(np.int64))
    x, y = whole(enlarge(shrink(originals))), whole(originals if targets is None else targets)
    bos = torch.full((len(y), 1), BOS)
    return torch.cat([x, bos], 1), torch.cat([bos, y[:, :-1]], 1), y


class Loss(torch.autograd.Function):
    """Mean cross entropy to a bell around the target. A near miss is nearly as good as a hit, and the scores become smooth."""

    @staticmethod
    def forward(ctx, logits, targets, bells):
        log = F.log_softmax(logits.float(), -1)
        bell = bells[targets]
        ctx.save_for_backward(log, bell)
        ctx.dtype = logits.dtype
        return -(bell * log).sum() / len(log)

    @staticmethod
    def backward(ctx, grad):
        log, bell = ctx.saved_tensors
        return log.exp().sub_(bell).mul_(grad / len(log)).to(ctx.dtype), None, None


def bells(sigma):
    value = torch.arange(V).float()
    t = torch.exp(-0.5 * ((value[None] - value[:, None]) / sigma) ** 2)
    t[:, BOS] = 0
    return t / t.sum(1, keepdim=True)


def save(state, metadata, path):
    header, blobs, at = {'__metadata__': {k: str(v) for k, v in metadata.items()}}, [], 0
    for name, t in state.items():
        b = t.detach().float().numpy().astype(np.float16).tobytes()
        header[name] = {'dtype': 'F16', 'shape': list(t.shape), 'data_offsets': [at, at + len(b)]}
        at += len(b)
        blobs.append(b)
    h = json.dumps(header).encode()
    h += b' ' * (-len(h) % 8)
    with open(path + '.part', 'wb') as f:
        f.write(struct.pack('<Q', len(h)) + h + b''.join(blobs))
    os.replace(path + '.part', path)


def load(module, path, prefix=''):
    blob = open(path, 'rb').read()
    n = struct.unpack('<Q', blob[:8])[0]
    module.load_state_dict({
        k: torch.from_numpy(np.frombuffer(blob, np.float16, offset=8 + n + e['data_offsets'][0], count=math.prod(e['shape']))
                            .astype(np.float32).reshape(e['shape']))
        for k, e in json.loads(blob[8:8 + n]).items() if k != '__metadata__'})


def save_model(model, path):
    save(model.state_dict(), {'d_model': D, 'ffn': FF, 'heads': H, 'encoder_layers': NE, 'decoder_layers': ND, 'vocab': V,
                              'bos': BOS, 'eos': '', 'never': BOS}, path)


@torch.no_grad()
def measure(model, data, bell):
    """Loss, error of the best intensity in levels and how often it is right, given the true pixels before."""
    loss = error = right = 0
    for i in range(0, len(data), 50):
        s, x, y = tokens(data[i:i + 50])
        with torch.autocast('cpu', dtype=torch.bfloat16):
            z = model.logits(model(s, x)).float().view(-1, V)
        best = z.argmax(-1)
        loss += Loss.apply(z, y.view(-1), bell).item() * len(s) / len(data)
        error += (best - y.view(-1)).abs().float().mean().item() * len(s) / len(data)
        right += (best == y.view(-1)).float().mean().item() * len(s) / len(data)
    return f'dev loss {loss:.3f} error {error:.2f} right {right:.3f}'


def train_model(args):
    start = time.time()
    said = lambda *x: print(f'{time.time() - start:.0f}s', *x, flush=True)
    torch.manual_seed(args.seed)
    random = np.random.default_rng(args.seed)
    data, dev, bell = generate(args.count, args.seed), generate(200, 10 ** 6), bells(args.sigma)
    said(len(data), 'images')
    model = Model()
    if args.init:
        load(model, args.init)
    opt = torch.optim.Adam(model.parameters(), lr=0, betas=(0.9, 0.98))
    begin, step, losses, reported, done = time.time(), 0, [], time.time(), 0.0
    while done < 1:
        order = random.permutation(len(data))
        for i in range(0, len(order) - args.batch + 1, args.batch):
            done = (time.time() - begin) / (args.minutes * 60)
            if done >= 1:
                break
            step += 1
            for g in opt.param_groups:
                g['lr'] = args.lr * min(step / args.warmup, 1) * (0.49 * (1 + math.cos(math.pi * done)) + 0.02)
            s, x, y = tokens(turned(data[order[i:i + args.batch]], random))
            with torch.autocast('cpu', dtype=torch.bfloat16):
                z = model.logits(model(s, x)).view(-1, V)
            loss = Loss.apply(z, y.view(-1), bell)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            losses.append(loss.item())
            if step <= 5 or step % 50 == 0:
                said(f'step {step} loss {np.mean(losses[-50:]):.3f}')
            if time.time() - reported > args.report * 60:
                reported = time.time()
                said(f'step {step}', measure(model, dev, bell))
                save_model(model, args.out)
    said(f'step {step}', measure(model, dev, bell))
    save_model(model, args.out)


class Head(nn.Module):
    """Guesses a token further on: the scores are the model's own of h + W2 relu(W1 h + b1) + b2."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(D, FF), nn.Linear(FF, D)
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.down.bias)

    def forward(self, h):
        return h + self.down(F.relu(self.up(h)))


@torch.no_grad()
def hidden(model, originals, decoded):
    """Hidden vectors behind each token of what the model made of the images, and the token that follows: [n * 256, D], [n * 256]."""
    h, y = [], []
    for i in range(0, len(originals), 50):
        s, x, t = tokens(originals[i:i + 50], decoded[i:i + 50])
        h.append(model(s, x).reshape(-1, D))
        y.append(t.view(-1))
    return torch.cat(h), torch.cat(y)


def guess(model, head, h):
    with torch.autocast('cpu', dtype=torch.bfloat16):
        z = head(h)
    return z.float() @ model.emb.weight.T + model.bias  # the best of a wide bell wants all bits


@torch.no_grad()
def accepted(model, heads, h, y, epsilon):
    """Mean accepted block, given the model's own outputs. Of epsilon > 0 an estimate: real ones go on from the guesses they keep."""
    n = len(y) // LENGTH
    y = y.view(n, LENGTH)
    right = np.zeros((n, LENGTH, len(heads)), bool)
    for j, head in enumerate(heads, 1):
        best = guess(model, head, h).argmax(-1).view(n, LENGTH)
        right[:, :LENGTH - j, j - 1] = ((best[:, :LENGTH - j] - y[:, j:]).abs() <= epsilon).numpy()
    runs, rounds = right.cumprod(2).sum(2), 0
    for image in runs:
        at = 0
        while at < LENGTH:
            at, rounds = at + 1 + image[at], rounds + 1
    return n * LENGTH / rounds


def train_heads(args):
    start = time.time()
    said = lambda *x: print(f'{time.time() - start:.0f}s', *x, flush=True)
    model, bell = Model().eval().requires_grad_(False), bells(args.sigma)
    load(model, args.model)
    model.causal = model.causal.float()
    originals, decoded = read_pgm(args.input), read_pgm(args.decoded)
    h, y = hidden(model, originals, decoded)
    dev, h, y = (h[:100 * LENGTH], y[:100 * LENGTH]), h[100 * LENGTH:], y[100 * LENGTH:]
    own = guess(model, nn.Identity(), dev[0]).argmax(-1) == dev[1]
    said(f'{len(originals)} images, the model gives its own next token at {own.float().mean():.4f} of the positions')
    torch.manual_seed(args.seed)
    heads = nn.ModuleList(Head() for _ in range(args.block - 1))
    opt = torch.optim.Adam(heads.parameters(), lr=0, betas=(0.9, 0.98))
    place = torch.arange(len(y)) % LENGTH
    begin, step, reported, done = time.time(), 0, time.time(), 0.0
    while done < 1:
        order = torch.randperm(len(y))
        for i in range(0, len(order) - args.positions + 1, args.positions):
            done = (time.time() - begin) / (args.minutes * 60)
            if done >= 1:
                break
            step += 1
            for g in opt.param_groups:
                g['lr'] = args.lr * min(step / args.warmup, 1) * (0.49 * (1 + math.cos(math.pi * done)) + 0.02)
            at, total = order[i:i + args.positions], 0
            for j, head in enumerate(heads, 1):
                if j > 1:  # a guess counts where those before it are kept: it trains there, and at some of the other places
                    at = at[near | (torch.rand(len(at)) < args.others)]
                at = at[place[at] + j < LENGTH]
                z = guess(model, head, h[at])
                loss = Loss.apply(z, y[at + j], bell)
                near = (z.detach().argmax(-1) - y[at + j]).abs() <= args.epsilon
                total = total + loss * (len(at) / args.positions) ** 0.5
            opt.zero_grad(set_to_none=True)
            total.backward()
            opt.step()
            if time.time() - reported > args.report * 60:
                reported = time.time()
                finish(args, model, heads, dev, lambda *x: said(f'step {step} loss {total.item():.3f}', *x))
    finish(args, model, heads, dev, lambda *x: said(f'step {step}', *x))


def finish(args, model, heads, dev, said):
    said(f'accepted: exact {accepted(model, heads, *dev, 0):.3f}, distance {args.epsilon} {accepted(model, heads, *dev, args.epsilon):.3f}')
    state = {f'heads.{i}.{name}': t for i, head in enumerate(heads, 2) for name, t in head.state_dict().items()}
    save(state, {'block': len(heads) + 1, 'd_model': D, 'ffn': FF}, args.out)


if __name__ == '__main__':
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser()
    p.add_argument('what', choices=['samples', 'images', 'model', 'heads'])
    p.add_argument('--count', type=int, default=30000, help='images')
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--out')
    p.add_argument('--minutes', type=float, default=25)
    p.add_argument('--batch', type=int, default=32, help='images in a step')
    p.add_argument('--init', help='go on from these weights')
    p.add_argument('--lr', type=float, default=2e-3)
    p.add_argument('--warmup', type=int, default=100)
    p.add_argument('--sigma', type=float, default=6.0, help='of the bell around each target, in levels')
    p.add_argument('--report', type=float, default=3, help='minutes between reports, each of which saves')
    p.add_argument('--model', default=os.path.join(here, 'model.safetensors'), help='which the heads are for')
    p.add_argument('--input', help='originals whose small images the model enlarged')
    p.add_argument('--decoded', help='what it made of them')
    p.add_argument('--block', type=int, default=8, help='k, the largest block: k - 1 heads')
    p.add_argument('--positions', type=int, default=4096, help='in a step')
    p.add_argument('--epsilon', type=int, default=2, help='up to which a guess counts as right')
    p.add_argument('--others', type=float, default=0.2, help='share of the places where an earlier guess was wrong')
    p.add_argument('--threads', type=int, default=1)
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    if args.what == 'samples':
        write_pgm(args.out or os.path.join(here, 'samples.pgm'), generate(32, 2 * 10 ** 6))
    elif args.what == 'images':
        write_pgm(args.out, generate(args.count, args.seed))
    elif args.what == 'model':
        args.out = args.out or os.path.join(here, 'model.safetensors')
        train_model(args)
    else:
        args.out = args.out or os.path.join(here, 'heads.safetensors')
        train_heads(args)
