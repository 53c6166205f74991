"""Ratios and targets: what the figures of a scenario say. Pure: plain data in, plain data out.

A ratio is the median of the ratios within each round: in one round all contestants are measured within seconds of each other.
"""
from lib.ratios import paired
from lib.scenarios import BY_NAME, IDLE_TARGET_KIB

MET, MISSED, TOO_NOISY = "met", "missed", "too noisy to tell"
WIDEST = 0.05  # half the width of an interval that still decides, as a share of its figure


def judge(figure, low, high, target):
    """The verdict on a figure, given its 95 % interval. A target inside the interval counts as met, unless the interval is wider than ±5 %."""
    if high <= target:
        return MET
    if low > target:
        return MISSED
    return MET if (high - low) / 2 <= WIDEST * figure else TOO_NOISY


def ratio(result, label, what="us"):
    """headgate's figure in those of another row: (ratio, low, high), or None where one of them is absent."""
    rows = result["rows"]
    if label == "headgate" or any(what not in rows.get(name, {}) for name in ("headgate", label)):
        return None
    return paired(rows["headgate"][what]["rounds"], rows[label][what]["rounds"])


def verdicts(name, result):
    """One {what, figure, low, high, target, word} for each target of the scenario whose figures are there."""
    scenario = BY_NAME[name]
    wanted = [("CPU per request, of " + label, ratio(result, label), target) for label, target in scenario.targets.items()]
    wanted += [("closed-loop p99, of " + label, ratio(result, label, "p99_us"), target) for label, target in scenario.p99_targets.items()]
    if scenario.redis_target:
        wanted.append(("Redis's CPU per request, of nginx+lua", ratio(result, "nginx+lua", "redis_us"), scenario.redis_target))
    own = result["rows"].get("headgate", {})
    if "idle" in own:
        wanted.append(("KiB per idle client", (own["idle"]["kib"],) * 3, IDLE_TARGET_KIB))
    return [{"what": what, "figure": seen[0], "low": seen[1], "high": seen[2], "target": target, "word": judge(*seen, target)}
            for what, seen, target in wanted if seen]
