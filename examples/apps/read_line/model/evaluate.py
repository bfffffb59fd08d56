"""Prints the table of docs/read_line.md: errors in held-back lines at four degrees, by several ways to search.

    python3 evaluate.py --read-line build/bin/read_line --build-ngram build/bin/build_ngram --count 2000 --folder held
    python3 evaluate.py ... --ways exact 'RNN-T beam'      # some rows alone; what is there is not made again

Needs what lines.py needs. n-grams and lexicon are of lines that are not held back; the lexicon has all names too, and the names that are
held back are the boosted ones. Where the exact search has no proof after 1,000 steps, the best text known counts; beside the row stands
how many lines have a proof.
"""
import argparse, os, re, subprocess, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lines import DEGREES

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = {'best path': ['--search', 'best-path'], 'beam': [], 'beam, lexicon': ['--lexicon', 'lexicon.txt'],
        'beam, n-grams': ['--ngram', 'chars.ngrams'], 'beam, n-grams, names': ['--ngram', 'chars.ngrams', '--bias', 'names.tsv'],
        'exact': ['--search', 'exact', '--steps', '1000'],
        'RNN-T greedy': ['--search', 'rnnt-greedy'], 'RNN-T beam': ['--search', 'rnnt-beam']}


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        old, row = row, [i]
        for j, y in enumerate(b, 1): row.append(min(old[j] + 1, row[-1] + 1, old[j - 1] + (x != y)))
    return row[-1]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--read-line', required=True)
    p.add_argument('--build-ngram', required=True)
    p.add_argument('--count', type=int, default=2000)
    p.add_argument('--lines', type=int, default=40000, help='lines of text that n-grams are trained from')
    p.add_argument('--folder', default='held')
    p.add_argument('--ways', nargs='+', choices=list(WAYS), default=list(WAYS), metavar='WAY', help=', '.join(WAYS))
    o = p.parse_args()
    read_line, build_ngram = os.path.abspath(o.read_line), os.path.abspath(o.build_ngram)
    make = lambda *a: subprocess.run([sys.executable, f'{HERE}/lines.py', *map(str, a)], check=True, stdout=subprocess.PIPE, text=True).stdout
    if not os.path.exists(f'{o.folder}/names.txt'):  # which is written last
        make('pictures', '--count', o.count, '--seed', 1, '--held-back', '--out', o.folder)
    os.chdir(o.folder)
    os.makedirs('frames', exist_ok=True)  # 1.5 GB for 2,000 lines
    if not os.path.exists('names.tsv'):  # likewise
        text = make('text', '--count', o.lines, '--seed', 7)
        with open('chars.txt', 'w') as f:
            f.writelines(' '.join('_' if c == ' ' else c for c in line if c != '_') + '\n' for line in text.split('\n') if line)
        subprocess.run([build_ngram, '--text', 'chars.txt', '--order', '6', '--fallback', '--out', 'chars.ngrams'], check=True, stdout=subprocess.DEVNULL)
        names = [n for n in open('names.txt', encoding='utf-8').read().split('\n') if n]
        words = sorted(set(re.findall('[A-Za-zÄÖÜäöüß]+', text)) | set(names))
        open('lexicon.txt', 'w').write('\n'.join(words) + '\n')
        open('names.tsv', 'w').write(''.join(f'{n}\t3\n' for n in names))
    print('| way | ' + ' | '.join(DEGREES) + ' |\n| --- |' + ' ---: |' * len(DEGREES))
    for way in o.ways:
        cells = []
        for degree in DEGREES:
            truth = open(f'{degree}.txt', encoding='utf-8').read().split('\n')[:o.count]
            found, unproved = [], 0
            for i in range(0, o.count, 250):
                files = [f'{degree}-{k + 1:04}.png' for k in range(i, min(o.count, i + 250))]
                run = subprocess.run([read_line, '--frames', 'frames', *WAYS[way], *files], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                if run.returncode not in (0, 1): sys.exit(f'read_line failed: {run.stderr}')
                found += run.stdout.split('\n')[:len(files)]
                unproved += run.stderr.count(': not proved in ')
            rate = lambda split: 100 * sum(distance(split(a), split(b)) for a, b in zip(truth, found, strict=True)) / sum(len(split(a)) for a in truth)
            proved = f' ({o.count - unproved} proved)' if way == 'exact' else ''
            cells.append(f'{rate(list):.1f} / {rate(str.split):.1f}{proved}')
        print(f'| {way} | ' + ' | '.join(cells) + ' |', flush=True)


if __name__ == '__main__':
    main()
