"""The figures as text: a block a scenario on the terminal, Markdown tables in docs/performance.md."""
from lib import judge, machine

BEGIN, END = "<!-- figures: written by `script/bench --write-docs` -->", "<!-- end of figures -->"


def number(value, digits=1):
    return "-" if value is None else f"{value:,.{digits}f}"


def duration(us):
    """Microseconds, to be read: 85 µs, 1.2 ms, 1.5 s."""
    if us is None:
        return "-"
    if us < 1000:
        return f"{us:.0f} µs"
    return f"{us / 1000:.1f} ms" if us < 1_000_000 else f"{us / 1e6:.1f} s"


def ratio_text(ratio, target):
    if target is None:
        return f"{ratio:.2f}"
    return f"{ratio:.2f} ({'≤' if judge.is_met(ratio, target) else 'above'} {target:g})"


def cells(name, result, label):
    """One row of a scenario: CPU, spread, ratio, rate, p50, p99, p99.9, p99 until it was read, memory, Redis."""
    row = result["rows"][label]
    latency = row.get("latency")
    us, compared = row.get("us"), judge.ratios(name, result).get(label)
    digits = 0 if us and us["most"] >= 1000 else 1
    return [
        number(us and us["median"], digits),
        f"{us['least']:,.{digits}f}–{us['most']:,.{digits}f}" if us else "-",
        ratio_text(*compared) if compared else "",
        number(row["rate"]["median"], 0) if us else "-",
        duration(latency and latency["p50"]["median"]),
        duration(latency and latency["p99"]["median"]),
        duration(judge.p999_of(row)),
        duration(latency and latency.get("p99_until_read", {}).get("median")),
        number(row["rss_mib"]["median"]) if us else "-",
        number(row["redis_us"]["median"]) if "redis_us" in row else "",
    ]


HEADS = ["CPU µs", "spread", "headgate is", "requests/s", "p50", "p99", "p99.9", "until read", "RSS MiB", "Redis µs"]
WIDTHS = [8, 15, 20, 12, 9, 9, 9, 12, 9, 10]


def heading():
    return f"{'':<14}" + "".join(f"{head:>{width}}" for head, width in zip(HEADS, WIDTHS))


def block(name, result):
    """A scenario on the terminal."""
    lines = [f"{name}: {result['title']}"]
    for label, row in result["rows"].items():
        if "idle" in row:
            idle = row["idle"]
            lines.append(f"  {label:<12}{idle['kib']:>8.2f} KiB a client of {idle['clients']:,}, {idle['cpu_s']:.2f} s of CPU in a second of silence")
        else:
            lines.append(f"  {label:<12}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells(name, result, label), WIDTHS)))
    if result.get("latency_rate"):
        lines.append(f"  latency at {result['latency_rate']:,.0f} requests/s for all, half of what headgate carried")
    lines += [f"  {note}" for note in judge.notes(name, result)]
    return "\n".join(lines)


def targets(results):
    """All targets in one list, those that were missed first."""
    every = [(name, each) for name, result in results.items() for each in judge.verdicts(name, result)]
    if not every:
        return ""
    counted = {word: sum(each["word"] == word for _, each in every) for word in (judge.MISSED, judge.WITHIN_NOISE, judge.NOT_JUDGED, judge.MET)}
    lines = [f"targets: {counted[judge.MET]} of {len(every)} met" + "".join(
        f", {count} {word}" for word, count in counted.items() if count and word != judge.MET)]
    for name, each in sorted(every, key=lambda pair: list(counted).index(pair[1]["word"])):
        word = each["word"].upper() if each["word"] == judge.MISSED else each["word"]
        lines.append(f"  {word:<13}{name}: {each['what']}: {each['figure']:.2f} (≤ {each['target']:g}){interval_text(each)}")
    return "\n".join(lines)


def interval_text(verdict):
    """Where chance has a part in it."""
    return f"; {verdict['low']:.2f} to {verdict['high']:.2f}" if verdict["low"] < verdict["high"] else ""


def busy_note(results):
    """Whose core was the limit: without it requests/s would be taken for a proxy's own."""
    idle = sorted({name for name, result in results.items() for row in result["rows"].values() if "busy" in row and row["busy"]["median"] < 0.9})
    if not idle:
        return ""
    return ("requests/s were bounded by the core of load and origin (or by others on the machine), not by the proxy, in some row of: " + ", ".join(idle)
            + ". CPU a request is hardly touched by that.")


def markdown(data):
    """What stands between the markers of docs/performance.md."""
    out = ["", "| | |", "|---|---|"]
    out += [f"| {what} | {text} |" for what, text in machine.in_words(data["machine"])]
    out += ["", "CPU is the proxy's, in µs a request; `ratio` is headgate's in those of that row, with its target. Latency is open-loop at half of",
            "headgate's capacity, the same rate for all: what requests waited for the proxy. `until read` is p99 of the same requests from when they",
            "were due until their answers were read, with what load and origin took in it.", "", busy_note(data["scenarios"]), ""]
    out += ["| scenario | | " + " | ".join(head if head != "headgate is" else "ratio" for head in HEADS) + " |", "|---" * (len(HEADS) + 2) + "|"]
    for name, result in data["scenarios"].items():
        for label, row in result["rows"].items():
            if "idle" not in row:
                first = f"**{name}**: {result['title']}" if label == "headgate" else ""
                out.append(f"| {first} | {label} | " + " | ".join(cells(name, result, label)) + " |")
    idle = data["scenarios"].get("idle")
    if idle:
        out += ["", "| idle client | KiB | of | CPU s in a second of silence |", "|---|---|---|---|"]
        out += [f"| {label} | {row['idle']['kib']:.2f} | {row['idle']['clients']:,} | {row['idle']['cpu_s']:.2f} |" for label, row in idle["rows"].items()]
    out += ["", "| target | figure | 95 % | at most | |", "|---|---|---|---|---|"]
    for name, result in data["scenarios"].items():
        for each in judge.verdicts(name, result):
            out.append(f"| {name}: {each['what']} | {each['figure']:.2f} | {interval_text(each)[2:]} | {each['target']:g} | "
                       f"{each['word'] if each['word'] == judge.MET else '**' + each['word'] + '**'} |")
    for curve in data.get("growth", []):
        out += ["", f"{curve['title']} ({curve['unit']}):", "", "| " + curve["by"] + " | " + " | ".join(f"{x:,}" for x, _ in curve["points"]) + " |",
                "|---" * (len(curve["points"]) + 1) + "|", "| " + curve["unit"] + " | " + " | ".join(f"{y:,.1f}" for _, y in curve["points"]) + " |"]
        out += [line for note in curve.get("notes", []) for line in ("", note)]
    notes = [f"- {name}: {note}" for name, result in data["scenarios"].items() for note in judge.notes(name, result)]
    return "\n".join(out + ([""] + notes if notes else []) + [""])


def write_docs(path, data):
    with open(path) as doc:
        text = doc.read()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise RuntimeError(f"{path} has no place for the figures: the lines {BEGIN} and {END}")
    with open(path, "w") as doc:
        doc.write(before + begin + "\n" + markdown(data) + end + after)
