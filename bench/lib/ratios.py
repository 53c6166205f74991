"""Ratios of two series of rounds, and how sure they are: low and high hold the ratio in 95 of 100 resamplings of the rounds."""
import random
import statistics

RESAMPLINGS = 1000


def of_rounds(own, other):
    """The median of the rounds' own ratios."""
    return statistics.median(a / b for a, b in zip(own, other, strict=True))


def paired(own, other, block=1):
    """of_rounds with its interval. `block`: so many rounds belong together and are drawn together."""
    each = [a / b for a, b in zip(own, other, strict=True)]
    blocks = [each[i:i + block] for i in range(0, len(each), block)]
    drawing = random.Random(1)  # the same figures say the same each time
    drawn = [statistics.median(sum(drawing.choices(blocks, k=len(blocks)), [])) for _ in range(RESAMPLINGS)]
    return of_rounds(own, other), *middle(drawn)


def apart(own, other):
    """The ratio of the medians, where a round of one has nothing to do with the same one of the other."""
    drawing = random.Random(1)

    def draw(rounds):
        return statistics.median(drawing.choices(rounds, k=len(rounds)))
    return statistics.median(own) / statistics.median(other), *middle([draw(own) / draw(other) for _ in range(RESAMPLINGS)])


def middle(drawn):
    drawn.sort()
    return drawn[len(drawn) * 25 // 1000], drawn[len(drawn) * 975 // 1000]
