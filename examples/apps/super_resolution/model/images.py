"""Small grey images, made up: a shaded background and one to three shaded shapes that make it brighter or darker.

Shapes are ellipses, rings, bars (rotated rectangles) and glyph-like strokes (two or three joined lines with round ends), with edges
that are one to three pixels soft. Background and shapes each change linearly across the image, so that few neighbours are equal.
"""
import numpy as np

SIZE, SMALL, SAMPLES = 16, 4, 3  # pixels of a side: original, input; samples of a pixel along each side


def generate(count, seed):
    """[count, 16, 16] intensities, uint8. The same for the same count and seed."""
    random = np.random.default_rng(seed)
    images, part = [], 1000
    for at in range(0, count, part):
        images.append(render(min(part, count - at), random))
    return np.concatenate(images)


def render(n, random):
    def uniform(low, high):
        return random.uniform(low, high, (n, 1, 1)).astype(np.float32)

    line = (np.arange(SIZE * SAMPLES, dtype=np.float32) + 0.5) / SAMPLES
    x, y = line[None, None, :], line[None, :, None]

    def shade(contrast):
        """A plane: brightness in the middle, and its slope a pixel."""
        angle, slope = uniform(0, 2 * np.pi), uniform(0, contrast)
        return (x - SIZE / 2) * np.cos(angle) * slope + (y - SIZE / 2) * np.sin(angle) * slope

    def frame():
        """Coordinates around a random place, turned."""
        angle, u, v = uniform(0, np.pi), x - uniform(2, SIZE - 2), y - uniform(2, SIZE - 2)
        return u * np.cos(angle) + v * np.sin(angle), v * np.cos(angle) - u * np.sin(angle)

    def ellipse():
        u, v = frame()
        a, b = uniform(2, 7), uniform(2, 7)
        return (np.sqrt((u / a) ** 2 + (v / b) ** 2) - 1) * np.minimum(a, b)

    def ring():
        u, v = frame()
        return np.abs(np.sqrt(u ** 2 + v ** 2) - uniform(3, 6)) - uniform(0.7, 1.5)

    def bar():
        u, v = frame()
        return np.maximum(np.abs(u) - uniform(2, 10), np.abs(v) - uniform(1, 3.5))

    def stroke():
        ends = [(uniform(1, SIZE - 1), uniform(1, SIZE - 1)) for _ in range(4)]
        third = random.random((n, 1, 1)) < 0.5
        distance = None
        for i in range(3):
            (x1, y1), (x2, y2) = ends[i], ends[i + 1]
            dx, dy = x2 - x1, y2 - y1
            t = np.clip(((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy + 1e-3), 0, 1)
            d = np.sqrt((x - x1 - t * dx) ** 2 + (y - y1 - t * dy) ** 2)
            distance = d if distance is None else np.minimum(distance, np.where((i < 2) | third, d, 99))
        return distance - uniform(0.8, 1.6)

    shapes = [ellipse, ring, bar, stroke]
    image = uniform(80, 175) + shade(5)
    for i in range(3):
        kind = random.integers(0, len(shapes), (n, 1, 1))
        distance = np.full_like(image, 99)
        for k, shape in enumerate(shapes):
            distance = np.where(kind == k, shape(), distance)
        if i > 0:  # the second and the third are there half the time, each
            distance = np.where(random.random((n, 1, 1)) < 0.5, distance, 99)
        soft = uniform(1, 3)  # pixels from outside to inside
        cover = np.clip(0.5 - distance / soft, 0, 1)
        contrast = uniform(20, 70) * np.where(random.random((n, 1, 1)) < 0.5, -1, 1)
        image = image + cover * (contrast + shade(3))
    pixels = image.reshape(n, SIZE, SAMPLES, SIZE, SAMPLES).mean((2, 4))
    return np.clip(np.rint(pixels), 0, 255).astype(np.uint8)


def shrink(images):
    """The means of squares of 4 x 4 pixels, halves rounded up: [n, 4, 4]."""
    step = SIZE // SMALL
    sums = images.reshape(-1, SMALL, step, SMALL, step).astype(np.int64).sum((2, 4))
    return ((sums + step * step // 2) // (step * step)).astype(np.uint8)


def enlarge(images):
    """16 x 16 pixels of 4 x 4, each interpolated linearly between the middles of the four nearest ones, halves rounded up."""
    at = np.clip((np.arange(SIZE) + 0.5) * SMALL / SIZE - 0.5, 0, SMALL - 1)
    low = np.minimum(at.astype(int), SMALL - 2)
    part = (at - low).astype(np.float32)
    x = images.astype(np.float32)
    x = x[:, low] * (1 - part[:, None]) + x[:, low + 1] * part[:, None]
    x = x[:, :, low] * (1 - part) + x[:, :, low + 1] * part
    return np.floor(x + 0.5).astype(np.uint8)


def turned(images, random):
    """Each image mirrored, transposed and inverted at random."""
    images = images.copy()
    for change in (lambda a: a[:, :, ::-1], lambda a: a[:, ::-1], lambda a: a.transpose(0, 2, 1), lambda a: 255 - a):
        some = random.random(len(images)) < 0.5
        images[some] = change(images[some])
    return images


def write_pgm(path, images):
    """One below the other."""
    with open(path, 'wb') as f:
        f.write(b'P5\n%d %d\n255\n' % (images.shape[2], images.shape[0] * images.shape[1]) + images.tobytes())


def read_pgm(path):
    """Square images that write_pgm wrote."""
    kind, size, most, pixels = open(path, 'rb').read().split(b'\n', 3)
    assert kind == b'P5' and most == b'255', path
    width = int(size.split()[0])
    return np.frombuffer(pixels, np.uint8).reshape(-1, width, width)
