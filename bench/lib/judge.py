"""Ratios and targets: what the figures of a scenario say. Plain data in, plain data out.

A ratio of CPU is the median of the rounds' own: in a round everybody is measured within seconds, on the machine as it is then.
A ratio of p99 is that of the two medians: rounds in which somebody else had the cores too often are left out (lib/latency.py), not the
same ones for everybody, and a pause that nobody could see is met by one of them alone. Where hardly a round was calm, nothing is judged.
"""
import statistics

from lib.ratios import apart, of_rounds, paired
from lib.scenarios import BY_NAME, IDLE_TARGET_KIB

UNEVEN = 3  # p99 of half of the rounds is above that many times what a quarter of them stayed below: something came and went
# Of a target: above it, but no further than chance would bring the same programs in another run, is neither met nor missed.
MET, MISSED, WITHIN_NOISE, NOT_JUDGED = "met", "missed", "within noise", "not judged"
NOT_PEERS = ("headgate", "floor")  # the floor does nothing with what it moves: no peer for latency


def ratios(name, result):
    """headgate's CPU a request in those of each other row: label -> (ratio, target or None)."""
    scenario, rows = BY_NAME[name], result["rows"]
    if "us" not in rows.get("headgate", {}):
        return {}
    own = rows["headgate"]["us"]
    itself = scenario.itself[0] if scenario.itself else None
    return {label: (of_rounds(own["rounds"], row["us"]["rounds"]), scenario.targets.get("itself" if label == itself else label))
            for label, row in rows.items() if label != "headgate" and "us" in row}


def verdicts(name, result):
    """Every target of a scenario: a list of {what, figure, low, high, target, word}."""
    scenario, rows = BY_NAME[name], result["rows"]
    own = rows.get("headgate", {})
    said = [verdict(f"CPU a request beside {label}", paired(own["us"]["rounds"], rows[label]["us"]["rounds"]), target)
            for label, (_, target) in ratios(name, result).items() if target is not None]
    if scenario.redis_target and "redis_us" in own and "redis_us" in rows.get("nginx+lua", {}):
        said.append(verdict("Redis's CPU a request beside nginx+lua",
                            paired(own["redis_us"]["rounds"], rows["nginx+lua"]["redis_us"]["rounds"]), scenario.redis_target))
    if "idle" in own:
        said.append(verdict("KiB an idle client", (own["idle"]["kib"],) * 3, IDLE_TARGET_KIB))
    best = best_peer_p99(scenario, rows, result["latency_rate"])
    if best and "latency" in own:
        p99 = verdict(f"p99 at half of capacity beside the best peer, {best}",
                      apart(own["latency"]["p99"]["rounds"], rows[best]["latency"]["p99"]["rounds"]), 1.0)
        if not all(row["latency"].get("is_calm", True) for row in rows.values() if "latency" in row):
            p99["word"] = NOT_JUDGED
        said.append(p99)
    return said


def verdict(what, ratio, target):
    figure, low, high = ratio
    word = MET if is_met(figure, target) else MISSED if low > target else WITHIN_NOISE
    return {"what": what, "figure": figure, "low": low, "high": high, "target": target, "word": word}


def is_met(figure, target):
    return round(figure, 2) <= target


def best_peer_p99(scenario, rows, rate):
    """Its label; None where there is none. Who carries less than the rate is best only where nobody carries it: its queue grows for as long
    as it is loaded, and p99 says how long that was."""
    itself = scenario.itself[0] if scenario.itself else None
    seen = [(row["rate"]["median"] < rate, row["latency"]["p99"]["median"], label) for label, row in rows.items()
            if label not in NOT_PEERS and label != itself and "latency" in row]
    return min(seen, default=(None,))[-1]


def notes(name, result):
    """What was noted while it was measured, and whether p99 differs so much between rounds that their median says little."""
    rows = result["rows"]
    best = best_peer_p99(BY_NAME[name], rows, result["latency_rate"])
    seen = {label: rows[label]["latency"]["p99"] for label in ("headgate", best) if "latency" in rows.get(label, {})}
    quiet = {label: statistics.quantiles(p99["rounds"], n=4)[0] for label, p99 in seen.items() if len(p99["rounds"]) > 1}
    if not any(seen[label]["median"] > UNEVEN * least for label, least in quiet.items()):
        return result["notes"]
    told = ", ".join(f"{label} {least:,.0f} µs" for label, least in quiet.items())
    return [*result["notes"], f"p99 differs much from round to round, as where a machine pauses; in the quietest quarter of them it was at most: {told}"]


def p999_of(row):
    """None where there were too few requests to speak of one in a thousand."""
    latency = row.get("latency")
    a_round = latency["count"] / len(latency["p999"]["rounds"]) if latency else 0
    return latency["p999"]["median"] if a_round >= 1000 else None
