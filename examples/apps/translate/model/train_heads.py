"""Trains the heads of blockwise parallel decoding (Stern et al. 2018) for the model of train.py, which stays as it is.

Head i = 2..k reads the decoder's last hidden vector h (after `dn`) and guesses the token i places after h's own input token, where
the model itself gives the next one: logits = emb (h + W2 relu(W1 h + b1) + b2) + bias, with the model's own `emb` and `bias`.

    python3 train_heads.py join --source train.de --target train.en --out joined      # joined.de, joined.en
    python3 train_heads.py train --source joined.de --target joined.en --dev dev.de --minutes 12 --out regular.safetensors
    translate --model . --search greedy --batch 256 --input joined.de --output distilled.en
    python3 train_heads.py train --source joined.de --target distilled.en --dev dev.de --minutes 25 --out heads.safetensors
    python3 train_heads.py evaluate --heads heads.safetensors --dev dev.de            # mean accepted block size

Needs torch (1.13 or newer) and sentencepiece; written for one CPU core with bfloat16, about 1 GB of memory for a million tokens.
"""
import argparse, json, math, os, random, struct, sys, time
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F, sentencepiece as spm
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from train import BOS, D, EOS, FF, V, Model, greedy, load, pad, read


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(D, FF), nn.Linear(FF, D)
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.down.bias)

    def forward(self, h, dropout=0.0):
        return h + self.down(F.dropout(F.relu(self.up(h)), dropout, dropout > 0))


def save_heads(heads, path, dtype):
    header, blobs, at = {'__metadata__': {'block': str(len(heads) + 1), 'd_model': str(D), 'ffn': str(FF)}}, [], 0
    for i, head in enumerate(heads, 2):
        for name, t in head.state_dict().items():
            b = t.detach().float().numpy().astype(dtype).tobytes()
            header[f'heads.{i}.{name}'] = {'dtype': 'F16' if dtype == np.float16 else 'F32', 'shape': list(t.shape),
                                           'data_offsets': [at, at + len(b)]}
            at += len(b)
            blobs.append(b)
    h = json.dumps(header).encode()
    h += b' ' * (-len(h) % 8)
    with open(path + '.part', 'wb') as f:
        f.write(struct.pack('<Q', len(h)) + h + b''.join(blobs))
    os.replace(path + '.part', path)


def load_heads(path):
    blob = open(path, 'rb').read()
    n = struct.unpack('<Q', blob[:8])[0]
    header, kind, heads = json.loads(blob[8:8 + n]), {'F32': np.float32, 'F16': np.float16}, nn.ModuleList()
    while f'heads.{len(heads) + 2}.up.weight' in header:
        state, head = {}, Head()
        for name in head.state_dict():
            e = header[f'heads.{len(heads) + 2}.{name}']
            a = np.frombuffer(blob, kind[e['dtype']], offset=8 + n + e['data_offsets'][0], count=math.prod(e['shape']))
            state[name] = torch.from_numpy(a.astype(np.float32).reshape(e['shape']))
        head.load_state_dict(state)
        heads.append(head)
    return heads


def join(args):
    """Writes the pairs in random order; as in train.py, one line in about ten joins two to five of them."""
    pairs = list(zip(read(args.source), read(args.target)))
    random.seed(args.seed)
    random.shuffle(pairs)
    i = 0
    with open(args.out + '.de', 'w', encoding='utf8') as de, open(args.out + '.en', 'w', encoding='utf8') as en:
        while i < len(pairs):
            k = random.randint(2, 5) if random.random() < 0.10 else 1
            de.write(' '.join(a for a, _ in pairs[i:i + k]) + '\n')
            en.write(' '.join(b for _, b in pairs[i:i + k]) + '\n')
            i += k


@torch.no_grad()
def hidden(model, pairs, max_tokens, exact):
    """The hidden vectors of all target positions, the tokens that follow each, and where each one's sentence ends."""
    pairs = sorted(((a + [EOS], b + [EOS]) for a, b in pairs), key=lambda p: (len(p[1]), len(p[0])))
    count = sum(len(b) for _, b in pairs)
    h, at, i = torch.empty(count, D, dtype=torch.float32 if exact else torch.float16), 0, 0
    while i < len(pairs):
        n, longest = 0, 0
        while i + n < len(pairs) and max(longest, len(pairs[i + n][0]), len(pairs[i + n][1])) * (n + 1) <= max(max_tokens, 400):
            longest = max(longest, len(pairs[i + n][0]), len(pairs[i + n][1]))
            n += 1
        group = pairs[i:i + n]
        keep = torch.arange(max(len(b) for _, b in group))[None] < torch.tensor([len(b) for _, b in group])[:, None]
        with torch.autocast('cpu', dtype=torch.bfloat16, enabled=not exact):
            memory, mask = model.encode(pad([a for a, _ in group]))
            out = model.decode(pad([[BOS] + b[:-1] for _, b in group]), memory, mask)[keep]
        h[at:at + len(out)] = out.to(h.dtype)
        at, i = at + len(out), i + n
    ends = np.cumsum([len(b) for _, b in pairs])
    tokens = torch.tensor([t for _, b in pairs for t in b])
    return h, tokens, torch.from_numpy(np.repeat(ends, [len(b) for _, b in pairs]))


@torch.no_grad()
def accepted(model, heads, dev, sizes):
    """Mean accepted block sizes of exact greedy decoding: tokens (the end included) per round, as the paper counts them."""
    h, tokens, ends = dev
    n, starts = len(tokens), torch.cat([torch.zeros(1, dtype=torch.long), ends.unique()])[:-1]
    right = torch.zeros(n, len(heads) + 1, dtype=torch.bool)
    for j, head in enumerate(heads, 1):
        for i in range(0, n, 2000):
            at = torch.arange(i, min(i + 2000, n))
            at = at[at + j < ends[at]]
            right[at, j] = model.logits(head(h[at].float())).argmax(-1) == tokens[at + j]
    run, out = right[:, 1:].long().cumprod(1).tolist(), {}
    for k in sizes:
        rounds = 0
        for a, b in zip(starts.tolist(), ends.unique().tolist()):
            while a < b:
                a += 1 + sum(run[a][:k - 1])
                rounds += 1
        out[k] = n / rounds
    return out


def dev_set(model, sp, path, limit=None):
    sources = [sp.encode(s) for s in read(path)[:limit]]
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    pairs = []
    for i in range(0, len(order), 50):
        group = [sources[j] for j in order[i:i + 50]]
        pairs += zip(group, greedy(model, group))
    return hidden(model, pairs, 1600, True)


class Loss(torch.autograd.Function):
    """Mean cross entropy of z W^T + b with its gradient for z only, in bfloat16; also which targets were the best."""
    @staticmethod
    def forward(ctx, z, w, b, target):
        p = torch.addmm(b, z, w.t()).softmax(-1)
        of = p.gather(1, target[:, None])
        best = (of >= p.amax(-1, True))[:, 0]
        p.scatter_add_(1, target[:, None], torch.full_like(of, -1))
        ctx.save_for_backward((p @ w).float() / len(z))
        ctx.mark_non_differentiable(best)
        return -of.float().clamp(min=1e-9).log().mean(), best

    @staticmethod
    def backward(ctx, g, _):
        return ctx.saved_tensors[0] * g, None, None, None


class Candidates:
    """The output rows of one batch: the frequent tokens, the batch's targets, and random others that stand for all the rest."""
    def __init__(self, model, tokens, frequent, sampled):
        self.w, self.b = model.emb.weight.detach().bfloat16(), model.bias.detach()
        self.frequent = torch.bincount(tokens, minlength=V).argsort(descending=True)[:frequent]
        self.sampled = sampled

    def draw(self, targets):
        kept = torch.zeros(V, dtype=torch.bool)
        kept[self.frequent] = True
        kept[targets] = True
        rest = (~kept).nonzero()[:, 0]
        some = rest[torch.randperm(len(rest))[:self.sampled]]
        ids = torch.cat([kept.nonzero()[:, 0], some])
        b = self.b[ids]
        if len(some):
            b[-len(some):] += math.log(len(rest) / len(some))
        index = torch.zeros(V, dtype=torch.long)
        index[ids] = torch.arange(len(ids))
        return self.w[ids], b.bfloat16(), index


@torch.no_grad()
def settled(model, h, tokens):
    """Where the model's own next token is the target's: only there do the heads' guesses count."""
    w, b = model.emb.weight.bfloat16(), model.bias.bfloat16()
    return torch.cat([torch.addmm(b, h[i:i + 4096].bfloat16(), w.t()).argmax(-1) == tokens[i:i + 4096] for i in range(0, len(h), 4096)])


def train(args, model, sp):
    start = time.time()
    said = lambda *x: print(f'{time.time() - start:.0f}s', *x, flush=True)
    dev = dev_set(model, sp, args.dev, args.dev_limit) if args.dev else None
    pairs = [(sp.encode(a), sp.encode(b)) for a, b in list(zip(read(args.source), read(args.target)))[:args.limit]]
    pairs = [(a, b) for a, b in pairs if a and b and max(len(a), len(b)) < 150]
    h, tokens, ends = hidden(model, pairs, args.max_tokens, False)
    use = settled(model, h, tokens)
    said(f'{len(pairs)} pairs, {len(tokens)} positions, the model gives the next token at {use.float().mean():.3f} of them')
    torch.manual_seed(args.seed)
    heads = load_heads(args.init) if args.init else nn.ModuleList(Head() for _ in range(args.block - 1))
    opt = torch.optim.Adam(heads.parameters(), lr=0, betas=(0.9, 0.98))
    rows = Candidates(model, tokens, args.frequent, args.sampled)
    tokens = torch.cat([tokens, tokens.new_zeros(len(heads))])
    use = use.nonzero()[:, 0]
    use = use[use + 1 < ends[use]]
    begin, step, number, best, reported, done = time.time(), 0, 0, 0.0, time.time(), 0.0
    sums, hits, counts = [0.0] * len(heads), [0] * len(heads), [0] * len(heads)
    while done < 1:
        number += 1
        order = use[torch.randperm(len(use))]
        for i in range(0, len(order) - args.batch + 1, args.batch):
            done = (time.time() - begin) / (args.minutes * 60)
            if done >= 1:
                break
            step += 1
            for g in opt.param_groups:
                g['lr'] = args.lr * min(step / args.warmup, 1) * (0.495 * (1 + math.cos(math.pi * done)) + 0.01)
            at = order[i:i + args.batch]
            w, b, index = rows.draw(torch.cat([tokens[at + j] for j in range(1, len(heads) + 1)]))
            total = 0
            for j, head in enumerate(heads, 1):           # guess j counts where the guesses before it were right: it trains there,
                if j > 1:                                 # and at a few of the other positions
                    at = at[(best_ones | (torch.rand(len(at)) < args.others)) & (at + j < ends[at])]
                    if len(at) < 2:
                        break
                target = tokens[at + j]
                with torch.autocast('cpu', dtype=torch.bfloat16):
                    z = head(h[at].bfloat16(), args.dropout)
                loss, best_ones = Loss.apply(z.bfloat16(), w, b, index[target])
                total = total + loss * (len(at) / args.batch) ** 0.5
                sums[j - 1] += loss.item() * len(at)
                hits[j - 1] += int(best_ones.sum())
                counts[j - 1] += len(at)
            opt.zero_grad(set_to_none=True)
            total.backward()
            opt.step()
            if time.time() - reported > args.report * 60:
                reported, line = time.time(), ' '.join(f'{s / max(c, 1):.2f}/{x / max(c, 1):.2f}' for s, x, c in zip(sums, hits, counts))
                sums, hits, counts = [0.0] * len(heads), [0] * len(heads), [0] * len(heads)
                best = checkpoint(args, model, heads, dev, best, lambda *x: said(f'epoch {number} step {step} loss/right {line}', *x))
    checkpoint(args, model, heads, dev, best, lambda *x: said(f'epoch {number} step {step} end', *x))


def checkpoint(args, model, heads, dev, best, said):
    size = accepted(model, heads, dev, [args.block])[args.block] if dev else best
    said(f'block {size:.3f}')
    if size >= best:
        save_heads(heads, args.out, np.float16)
    return max(size, best)


if __name__ == '__main__':
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser()
    p.add_argument('what', choices=['join', 'train', 'evaluate'])
    p.add_argument('--model', default=os.path.join(here, 'model.safetensors'))
    p.add_argument('--spm', default=os.path.join(here, 'spm.model'))
    p.add_argument('--source', help='sentences to translate, one a line')
    p.add_argument('--target', help='their translations: references, or (distilled) what the model itself makes of them')
    p.add_argument('--dev', help='sentences to measure the accepted blocks on')
    p.add_argument('--dev-limit', type=int, help='the first so many of --dev')
    p.add_argument('--limit', type=int, help='train on the first so many pairs')
    p.add_argument('--out', default='heads.safetensors', help='file of the heads; of join: the beginning of two names')
    p.add_argument('--init', help='go on from these heads (safetensors)')
    p.add_argument('--heads', help='heads to evaluate (safetensors)')
    p.add_argument('--block', type=int, default=8, help='k, the largest block: k - 1 heads')
    p.add_argument('--minutes', type=float, default=25)
    p.add_argument('--batch', type=int, default=4096, help='positions in a step')
    p.add_argument('--max-tokens', type=int, default=4000, help='in a batch of the model itself')
    p.add_argument('--lr', type=float, default=1e-3)
    p.add_argument('--warmup', type=int, default=100)
    p.add_argument('--dropout', type=float, default=0.0)
    p.add_argument('--frequent', type=int, default=2048, help='tokens that are in every softmax of the training')
    p.add_argument('--sampled', type=int, default=512, help='tokens drawn for the rest')
    p.add_argument('--others', type=float, default=0.1, help='share of the positions where an earlier guess was wrong')
    p.add_argument('--report', type=float, default=2, help='minutes between reports, each of which saves the best so far')
    p.add_argument('--threads', type=int, default=1)
    p.add_argument('--seed', type=int, default=1)
    args = p.parse_args()
    if args.what == 'join':
        join(args)
        sys.exit()
    torch.set_num_threads(args.threads)
    model, sp = Model().eval().requires_grad_(False), spm.SentencePieceProcessor(model_file=args.spm)
    load(model, args.model)
    if args.what == 'train':
        train(args, model, sp)
    else:
        heads = load_heads(args.heads)
        sizes = accepted(model, heads, dev_set(model, sp, args.dev, args.dev_limit), range(1, len(heads) + 2))
        print('  '.join(f'k {k}: {v:.3f}' for k, v in sizes.items()))
