"""Ratios of two series of rounds with their 95 % intervals, by resampling the rounds (bootstrap)."""
import random
import statistics

RESAMPLINGS = 1000


def paired(own, other, block=1):
    """(median of the ratios within each round, low, high). `block`: this many consecutive rounds belong together (same processes) and
    are drawn together."""
    ratios = [a / b for a, b in zip(own, other, strict=True)]
    blocks = [ratios[i:i + block] for i in range(0, len(ratios), block)]
    drawing = random.Random(1)  # the same figures give the same interval every time
    drawn = sorted(statistics.median(sum(drawing.choices(blocks, k=len(blocks)), [])) for _ in range(RESAMPLINGS))
    return statistics.median(ratios), drawn[RESAMPLINGS * 25 // 1000], drawn[RESAMPLINGS * 975 // 1000]
