"""Makes up lines of text, draws them with free fonts, and degrades the pictures as scanners, fax machines and time do.

    python3 lines.py text --count 60000 --seed 7 > text.txt             # text alone, for a language model
    python3 lines.py pictures --count 2000 --seed 1 --held-back --out held     # held/fax-0001.png ..., held/fax.txt, held/names.txt
    python3 lines.py words --seed 7 --count 60000 > words.txt           # its words, one a line, most frequent first

The text is made up: letters, invoices, notes, addresses from templates and lists that stand here, and sentences of this repository's own
docs. A fifth of the sentences, of the first names and of the surnames are held back: only --held-back draws them, and it draws no others. Needs PIL, numpy, and
fonts of Debian: fonts-dejavu fonts-liberation fonts-freefont-ttf fonts-croscore fonts-linuxlibertine fonts-ebgaramond
fonts-cantarell fonts-lato fonts-open-sans fonts-roboto-unhinted fonts-courier-prime.
"""
import argparse, collections, functools, glob, hashlib, io, math, os, re, sys
import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, '..', '..', '..', '..'))
ALPHABET = ''.join(map(chr, range(32, 127))) + 'ÄÖÜäöüß€'
HEIGHT = 32  # of what the model sees
DEGREES = ['clean', 'scan', 'fax', 'worn']

FIRST = '''Anna Albert Agnes Alma Anton Arthur Bella Benno Berta Bruno Clara Carl Cora Conrad Dora David Edith Edgar Ella Emil Emma Erik
Eva Felix Flora Frank Frieda Georg Gerda Gustav Hanna Harald Heidi Henry Hilda Hugo Ida Igor Irma Isaac Jana Jakob Jenny Johann Judith
Julius Karin Karl Katja Konrad Laura Leon Lena Leo Lotte Ludwig Lydia Manfred Maria Martin Martha Max Mina Moritz Nadia Nils Nora
Norbert Olga Oscar Otto Paula Paul Petra Peter Quentin Rita Robert Rosa Rudolf Ruth Samuel Sara Simon Sonja Stefan Tanja Thomas Tilda
Tobias Ulla Ulrich Vera Victor Walter Wanda Werner Xaver Yvonne Zoe Jörg Jürgen Käthe Bärbel Günter'''.split()
SURNAME = '''Abel Adler Albrecht Amsel Arndt Bach Bauer Baxter Becker Berger Bishop Blake Brandt Braun Brenner Carter Clarke Cooper
Curtis Dawson Dietrich Dixon Dorn Eberhard Ebner Eckert Ellis Engel Farmer Feldmann Fischer Fletcher Frank Fuchs Gardner Geiger Gerber
Gibson Graf Gruber Haas Hammer Harper Hartmann Heller Hofmann Holmes Huber Hughes Jansen Jordan Kaiser Keller Kirsch Klein Koch
Krause Kramer Lang Lehmann Lenz Lindner Lorenz Marsh Mason Maurer Mayer Moser Nagel Neumann Nolan Oswald Otto Palmer Parker Peters
Pfeiffer Pohl Porter Quinn Rau Reed Reiter Richter Ritter Roth Sailer Sanders Schmidt Schubert Seidel Sommer Stein Stone Tanner
Thoma Turner Ulmer Vogel Vogt Wagner Walsh Weaver Weber Wenzel Winkler Wolff York Zeller Ziegler Müller Schäfer Köhler Krüger Böhm
Hübner Löwe Jäger Großmann Weiß Quarzberg Dunkelbach Fernwald Tolliver Brackwater Ashgrove Pemberlow Rosenquist Vandermeer Okonski
Zimmerlund Kasperowitz Haverstock Lindqvist Trauenfels Mirabelli Castellan Duvivier Petrosyan'''.split()
CITY = '''Bamberg Berlin Bonn Bremen Cambridge Chester Cologne Dresden Dublin Durham Erfurt Essen Exeter Freiburg Fulda Geneva Graz
Halle Hamburg Hanover Jena Kassel Kiel Leeds Leipzig Lincoln Linz London Mainz Munich Oxford Passau Potsdam Reading Rostock Salzburg
Stuttgart Trier Ulm Vienna Weimar Wells Worms York Zurich Köln München Nürnberg Würzburg Düsseldorf'''.split()
STREET = '''Lindenstraße Bahnhofstraße Hauptstraße Gartenweg Mühlgasse Kirchplatz Schulstraße Am|Markt Rosenweg Parkallee Mill|Lane
Church|Street High|Street Station|Road Park|Avenue King|Street Garden|Row Bridge|Street Harbour|View Old|Post|Road'''.replace('\n', ' ').split()
MONTH = 'January February March April May June July August September October November December'.split()
MONAT = 'Januar Februar März April Mai Juni Juli August September Oktober November Dezember'.split()
THING = '''paper|and|envelopes three|boxes|of|nails a|wooden|ladder two|oak|chairs the|garden|bench repairs|to|the|roof a|new|window|frame
twelve|copper|pipes a|used|bicycle coal|and|firewood six|sacks|of|flour a|pair|of|boots the|kitchen|stove paint|and|brushes
a|set|of|keys four|wool|blankets the|piano|in|the|hall lamp|oil|and|matches seeds|for|the|spring a|case|of|red|wine books|and|maps
the|printing|press a|sewing|machine medical|supplies cleaning|of|the|chimney a|load|of|gravel'''.replace('\n', ' ').split()
JOB = '''the|baker the|notary the|teacher the|gardener the|doctor the|joiner the|librarian the|captain the|mayor the|printer the|tailor
the|watchmaker the|bookkeeper the|surveyor'''.replace('\n', ' ').split()
TEMPLATES = '''Dear {T} {S}, thank you for your letter of {D}.
Please find enclosed the invoice for {G}.
Invoice No. {N} of {D}, total {M}
We ask you to pay {M} before {D}.
{F} {S}, {R} {H}, {Z} {C}
The meeting with {F} {S} is on {D} at {U}.
{F} {S} from {C} has ordered {G}.
I met {F} {S} and {K} in {C} last {W}.
Delivery of {G} to {F} {S}, {C}
The train from {C} to {C} leaves at {U}.
Received from {T} {S}: {M} for {G}.
My brother {F} will come to {C} on {W}.
{T} {S} was born on {D} in {C}.
Yours sincerely, {F} {S}
Our reference: {A}; your order {N}
Telephone {P}, ask for {T} {S}
Date: {D}   Amount: {M}
{G}: {M} each, {H} pieces
Your account {A} shows a balance of {M}.
We regret that {G} cannot be delivered before {W}.
On {W} {F} and {F} went to see {K} in {C}.
The key to {R} {H} is with {T} {S}.
{K} asked {F} {S} for {G}.
Signed in {C} on {D} by {F} {S} and {F} {S}
Has {F} {S} paid for {G}? No, not yet.
Paid {M} (discount {Q}%) on {D}.
Contract between {F} {S}, {C}, and {F} {S}, {C}
If it rains on {W}, we shall meet at {U}.
"{G}", said {K}, "{M} and no less!"
The house at {R} {H} was sold for {M}.
Sehr geehrter Herr {S}, vielen Dank für Ihr Schreiben.
Sehr geehrte Frau {S}, Ihre Rechnung vom {E} ist bezahlt.
Rechnung Nr. {N} vom {E}, Betrag {M}
{C}, den {E}
Wir bitten um Zahlung von {M} bis zum {E}.
Mit freundlichen Grüßen, {F} {S}
Frau {F} {S} wohnt in der {R} {H}.
Termin am {E} um {U} Uhr bei Dr. {S}
Kundennummer {A}, Bestellung {N}
Geboren am {E} in {C}'''.split('\n')


def held(word):
    """Whether a sentence or a name is held back: one in five."""
    return hashlib.sha1(word.encode()).digest()[0] % 5 == 0


@functools.lru_cache(None)
def sentences():
    """Of the repository's own docs, and the sentences of the translation example."""
    found = []
    for file in sorted(glob.glob(ROOT + '/docs/*.md')):
        text = re.sub(r'(?ms)^```.*?^```', '', open(file, encoding='utf-8').read())
        text = '\n'.join(l for l in text.split('\n') if not re.match(r'\s*(\||#|<|    )', l))
        text = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', text).replace('`', '').replace('**', '')
        for paragraph in re.split(r'\n\s*\n|\n[-*] ', text):
            found += re.split(r'(?<=[.!?:]) (?=[A-Z])', ' '.join(paragraph.split()))
    for language in 'en', 'de':
        found += open(f'{ROOT}/examples/apps/translate/sample.{language}', encoding='utf-8').read().split('\n')
    keep = lambda s: len(s) > 10 and all(c in ALPHABET for c in s) and not re.search(r'[{}<>_\\|=]', s)
    return [s for s in dict.fromkeys(found) if keep(s)]


@functools.lru_cache(None)
def parts(held_back):
    pick = lambda words: [w.replace('|', ' ') for w in words if held(w) == held_back]
    return pick(FIRST), pick(SURNAME), [s for s in sentences() if held(s) == held_back]


@functools.lru_cache(None)
def common_words():
    return sorted({w for s in parts(False)[2] for w in re.findall(r'[A-Za-zÄÖÜäöüß]+', s)})


def number(rng, digits):
    return ''.join(str(rng.integers(0 if i else 1, 10)) for i in range(digits))


def field(rng, letter, held_back):
    one = lambda words: words[rng.integers(len(words))].replace('|', ' ')
    first, surname, _ = parts(held_back)
    day, month, year = rng.integers(1, 29), rng.integers(1, 13), rng.integers(1880, 2030)
    if letter == 'F': return one(first)
    if letter == 'S': return one(surname)
    if letter == 'T': return one(['Mr', 'Mrs', 'Ms', 'Dr', 'Mr', 'Mrs'])
    if letter == 'C': return one(CITY)
    if letter == 'R': return one(STREET)
    if letter == 'G': return one(THING)
    if letter == 'K': return one(JOB)
    if letter == 'W': return one(['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'])
    if letter == 'H': return str(rng.integers(1, 200))
    if letter == 'Q': return str(rng.integers(1, 60))
    if letter == 'Z': return number(rng, 5)
    if letter == 'U': return f'{rng.integers(6, 23)}:{rng.integers(0, 12) * 5:02}'
    if letter == 'N': return [number(rng, 6), number(rng, 2) + '-' + number(rng, 4), number(rng, 4) + '/' + number(rng, 2)][rng.integers(3)]
    if letter == 'A': return ''.join(one(list('ABCDEFGHKLMNPRSTUVWXYZ')) for _ in range(2)) + ' ' + number(rng, 3) + ' ' + number(rng, 3)
    if letter == 'P': return f'0{number(rng, 3)} / {number(rng, 3)} {number(rng, 3)}'
    if letter == 'M':
        amount = f'{int(10 ** rng.uniform(0, 4.5)):,}.{rng.integers(100):02}'
        return [f'EUR {amount}', f'{amount} EUR', f'${amount}', f'€ {amount}'][rng.integers(4)]
    if letter == 'E': return [f'{day:02}.{month:02}.{year}', f'{day}. {MONAT[month - 1]} {year}'][rng.integers(2)]
    return [f'{day:02}.{month:02}.{year}', f'{day} {MONTH[month - 1]} {year}', f'{year}-{month:02}-{day:02}',
            f'{MONTH[month - 1]} {day}, {year}'][rng.integers(4)]  # D


def text(rng, length=None, held_back=False):
    """A line, of at most about `length` characters; None: as in letters (20 to 60)."""
    limit = length or int(rng.integers(24, 61))
    if rng.random() < 0.6:
        line = re.sub(r'\{(.)\}', lambda m: field(rng, m[1], held_back), TEMPLATES[rng.integers(len(TEMPLATES))])
    else:
        pool = parts(held_back)[2]
        line = pool[rng.integers(len(pool))]
    return cut(rng, line, limit)


def cut(rng, line, limit):
    words = line.split(' ')
    if len(line) <= limit: return line
    begin = rng.integers(len(words)) if rng.random() < 0.5 else 0
    line = words[begin]
    for word in words[begin + 1:]:
        if len(line) + 1 + len(word) > limit: break
        line += ' ' + word
    return line[:limit].strip() or line


def training_text(rng, length):
    """As text(), and lines of words and signs without sense, so that the model learns to see and not only to guess."""
    kind = rng.random()
    if kind < 0.5: return text(rng, length)
    words = []
    while sum(map(len, words)) + len(words) < length:
        sort = rng.random()
        if sort < 0.45:
            pool = common_words()
            word = pool[rng.integers(len(pool))]
            word = [word, word, word.capitalize(), word.upper()][rng.integers(4)]
        elif sort < 0.6: word = field(rng, 'FSCMEDNHUPA'[rng.integers(11)], False)
        elif sort < 0.75:
            word = ''.join('aeiouyäöübcdfghjklmnpqrstvwxzß'[rng.integers(30)] for _ in range(rng.integers(1, 9)))
            if rng.random() < 0.4: word = word.capitalize()
        elif sort < 0.9: word = ''.join(ALPHABET[1 + rng.integers(len(ALPHABET) - 1)] for _ in range(rng.integers(1, 7)))
        else: word = number(rng, int(rng.integers(1, 8)))
        if rng.random() < 0.15: word += ',.;:!?)-'[rng.integers(8)]
        words.append(word)
    return ' '.join(words)[:length].strip() or 'a'


@functools.lru_cache(None)
def fonts():
    files = []
    for pattern in ['dejavu/*', 'liberation/*', 'freefont/*', 'croscore/*', 'linux-libertine/LinLibertine_R*', 'linux-libertine/LinBiolinum_*', 'ebgaramond/EBGaramond12-*', 'cantarell/*', 'lato/Lato-[RBIM]*', 'open-sans/*', 'roboto/unhinted/RobotoTTF/*', 'courier-prime/*', 'linux-libertine/*']:
        files += glob.glob(f'/usr/share/fonts/*type/{pattern}.[ot]tf') + glob.glob(f'/usr/share/fonts/*type/{pattern}')
    wrong = re.compile('Narrow|Cond|Biolinum_K|Math|Symbol|Initials|Thin|Hairline|Black|Heavy|SC-|AllSC|Keyboard|Capitals|Shadow|Slanted|SansMono-?(Bold)?Oblique|Cousine-BoldItalic')
    return sorted({f for f in files if f.endswith(('ttf', 'otf')) and not wrong.search(os.path.basename(f))})


@functools.lru_cache(400)
def font(file, size):
    return ImageFont.truetype(file, size)


def draw(rng, line):
    """Black on white, about 56 pixels high, a little uneven: an array of floats from 0 (black) to 1."""
    face = font(fonts()[rng.integers(len(fonts()))], int(rng.integers(36, 42)))
    left, top, right, bottom = face.getbbox(line)
    up, down = face.getmetrics()
    margin = lambda low, high: int(rng.integers(low, high))
    a, b, l, r = margin(0, 7), margin(0, 7), margin(2, 24), margin(2, 24)
    ascent, descent = min(top, int(up * 0.25)), max(bottom, up + int(down * 0.6))
    picture = Image.new('L', (right - left + l + r, descent - ascent + a + b), 255)
    ImageDraw.Draw(picture).text((l - left, a - ascent), line, font=face, fill=int(rng.integers(0, 40)))
    return picture


def degrade(rng, picture, degree):
    """The picture as the degree of DEGREES leaves it: uint8, its own height."""
    level = DEGREES.index(degree)
    between = lambda pairs: rng.uniform(*pairs[level])
    if level:  # paper lies askew, ink bleeds or breaks
        angle, shear = rng.normal() * [0, 0.25, 0.3, 0.35][level], rng.normal() * [0, 0.03, 0.05, 0.06][level]
        angle = max(-20 / picture.width, min(20 / picture.width, angle * math.pi / 180))
        h, w = picture.height, picture.width
        picture = picture.transform((w, h), Image.AFFINE, (1, shear, -shear * h / 2, math.tan(angle), 1, -math.tan(angle) * w / 2),
                                    Image.BILINEAR, fillcolor=255)
        ink = rng.random()
        if ink < 0.2: picture = picture.filter(ImageFilter.MinFilter(3))
        elif ink < 0.3: picture = picture.filter(ImageFilter.MaxFilter(3))
    height = between([(38, 52), (26, 36), (17, 22), (13, 17)])
    stretch = rng.uniform(0.9, 1.15)
    picture = picture.filter(ImageFilter.GaussianBlur(between([(0, 0.6), (0.3, 1.5), (0.3, 1.6), (0.8, 2.2)])))
    size = max(8, round(picture.width * height / picture.height * stretch)), round(height)
    x = np.asarray(picture.resize(size, Image.BILINEAR), np.float32) / 255
    if level >= 1:  # uneven light, faint ink, grain
        h, w = x.shape
        contrast = between([(1, 1), (0.6, 1), (0.5, 0.9), (0.3, 0.65)])
        base = rng.uniform(0.75, 1) - contrast
        x = max(base, 0) + contrast * x
        slope = between([(0, 0), (0, 0.1), (0, 0.15), (0, 0.25)])
        x = x - slope * np.sin(np.linspace(0, rng.uniform(1, 6), w) + rng.uniform(0, 6)).astype(np.float32)[None]
        x = x + rng.normal(size=(h, w)).astype(np.float32) * between([(0, 0), (0.01, 0.06), (0.02, 0.09), (0.04, 0.11)])
    if level == 2 and rng.random() < 0.5:  # a fax knows black and white, here not quite
        x = 1 / (1 + np.exp(-(x - np.quantile(x, 0.3) + 0.05) * rng.uniform(6, 20)))
    if level >= 2:
        for _ in range(rng.poisson([0, 0, 0.5, 0.8][level])):  # a streak of the drum
            row = rng.integers(x.shape[0])
            x[row] += rng.choice([-1, 1]) * rng.uniform(0.1, 0.35)
    if level == 3:  # blots, and places where the ink has gone
        for _ in range(rng.poisson(1.0 + x.shape[1] / 250)):
            cy, cx, radius = rng.uniform(0, x.shape[0]), rng.uniform(0, x.shape[1]), rng.uniform(1.0, 3.5)
            y, u = np.ogrid[:x.shape[0], :x.shape[1]]
            x = x + rng.choice([-0.4, 0.35, 0.35]) * np.exp(-((y - cy) ** 2 + (u - cx) ** 2) / radius ** 2).astype(np.float32)
    x = (np.clip(x, 0, 1) * 255).astype(np.uint8)
    if level:
        file = io.BytesIO()
        Image.fromarray(x).save(file, 'JPEG', quality=int(between([(95, 96), (50, 90), (30, 70), (20, 50)])))
        x = np.asarray(Image.open(file))
    return x


def shrink(x):
    """uint8 of any height -> uint8 of HEIGHT rows, as the model sees it: a triangle filter, as wide as the step."""
    width = max(8, round(x.shape[1] * HEIGHT / x.shape[0]))
    return np.asarray(Image.fromarray(x).resize((width, HEIGHT), Image.BILINEAR))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=['text', 'words', 'pictures'])
    parser.add_argument('--count', type=int, default=2000)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--held-back', action='store_true')
    parser.add_argument('--out', default='held')
    options = parser.parse_args()
    rng = np.random.default_rng([options.seed, options.held_back])
    if options.what == 'text':
        for _ in range(options.count): print(text(rng, 200, options.held_back))
        return
    if options.what == 'words':
        words = collections.Counter(w for _ in range(options.count) for w in text(rng, 200, options.held_back).split())
        for word, _ in words.most_common(): print(word)
        return
    os.makedirs(options.out, exist_ok=True)
    for degree in DEGREES:  # the same lines at all degrees
        rng = np.random.default_rng([options.seed, options.held_back])
        with open(f'{options.out}/{degree}.txt', 'w', encoding='utf-8') as texts:
            for i in range(options.count):
                line = text(rng, None, options.held_back)
                texts.write(line + '\n')
                own = np.random.default_rng([options.seed, i])  # the same font at all degrees
                Image.fromarray(degrade(own, draw(own, line), degree)).save(f'{options.out}/{degree}-{i + 1:04}.png')
    with open(f'{options.out}/names.txt', 'w', encoding='utf-8') as names:
        names.write('\n'.join(parts(options.held_back)[0] + parts(options.held_back)[1]) + '\n')


if __name__ == '__main__':
    main()
