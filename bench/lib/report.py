"""The figures as text: a block per scenario on the terminal, one Markdown table in docs/performance.md."""
from lib import judge, machine

BEGIN, END = "<!-- figures: written by `script/bench --write-docs` -->", "<!-- end of figures -->"
OWN_COLUMNS = ("headgate", "nginx", "haproxy", "floor")  # of the Markdown table; other rows share one column


def number(value, digits=1):
    return "-" if value is None else f"{value:,.{digits}f}"


def duration(us):
    """Microseconds as text: 85 µs, 1.2 ms, 1.5 s."""
    if us < 1000:
        return f"{us:.0f} µs"
    return f"{us / 1000:.1f} ms" if us < 1_000_000 else f"{us / 1e6:.1f} s"


def latencies(row, prefix=""):
    """p50 / p99."""
    if f"{prefix}p99_us" not in row:
        return "-"
    return " / ".join(duration(row[f"{prefix}{p}_us"]["median"]) for p in ("p50", "p99"))


def ratio_text(compared):
    return f"{compared[0]:.2f} ({compared[1]:.2f}–{compared[2]:.2f})" if compared else ""


HEADS = ["CPU µs", "spread", "headgate is", "requests/s", "closed p50 / p99", "open p50 / p99", "RSS MiB", "Redis µs"]
WIDTHS = [8, 15, 19, 12, 20, 20, 9, 10]


def cells(result, label):
    row = result["rows"][label]
    if "us" not in row:
        return ["-"] * len(HEADS)
    us, digits = row["us"], 0 if row["us"]["most"] >= 1000 else 1
    return [number(us["median"], digits), f"{us['least']:,.{digits}f}–{us['most']:,.{digits}f}", ratio_text(judge.ratio(result, label)),
            number(row["rate"]["median"], 0), latencies(row), latencies(row, "open_"), number(row["rss_mib"]["median"]),
            number(row["redis_us"]["median"]) if "redis_us" in row else ""]


def heading():
    return f"{'':<14}" + "".join(f"{head:>{width}}" for head, width in zip(HEADS, WIDTHS))


def idle_text(row):
    idle = row["idle"]
    return f"{idle['kib']:.2f} KiB per client of {idle['clients']:,}, {idle['cpu_s']:.2f} s of CPU per second"


def block(name, result):
    """A scenario on the terminal."""
    lines = [f"{name}: {result['title']}"]
    for label, row in result["rows"].items():
        lines.append(f"  {label:<12}" + (f"  {idle_text(row)}" if "idle" in row else
                                         "".join(f"{cell:>{width}}" for cell, width in zip(cells(result, label), WIDTHS))))
    if result["open_rate"]:
        lines.append(f"  open loop: {result['open_rate']:,.0f} requests/s for all, half of headgate's capacity; - for a proxy that carries less")
    lines += [f"  {note}" for note in result["notes"]]
    lines += [f"  {verdict_text(each)}" for each in judge.verdicts(name, result)]
    return "\n".join(lines)


def interval_text(verdict):
    return f"{verdict['low']:.2f}–{verdict['high']:.2f}" if verdict["low"] < verdict["high"] else ""


def verdict_text(each):
    interval = interval_text(each)
    return f"{each['word']:<18}{each['what']}: {each['figure']:.2f}{f' ({interval})' if interval else ''}, at most {each['target']:g}"


def targets(results):
    """All targets in one list, those that are not met first."""
    every = [(name, each) for name, result in results.items() for each in judge.verdicts(name, result)]
    order = (judge.MISSED, judge.TOO_NOISY, judge.MET)
    lines = [f"targets: {sum(each['word'] == judge.MET for _, each in every)} of {len(every)} met"] if every else []
    return "\n".join(lines + [f"  {name}: {verdict_text(each)}" for name, each in sorted(every, key=lambda pair: order.index(pair[1]["word"]))])


def markdown(data):
    """The text between the markers of docs/performance.md."""
    scenarios = {name: result for name, result in data["scenarios"].items() if result["rows"]}
    out = ["", "| | |", "|---|---|"] + [f"| {what} | {text} |" for what, text in machine.in_words(data["machine"])]
    heads = ("scenario", "CPU µs", "of nginx's", "of HAProxy's", "of the floor's", "of others'", "closed loop: headgate", "nginx", "HAProxy",
             "open loop: headgate", "nginx", "HAProxy")
    out += ["", "| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, result in scenarios.items():
        rows = result["rows"]
        if "us" not in rows.get("headgate", {}):
            continue
        others = [f"{label} {ratio_text(judge.ratio(result, label))}" for label in rows if label not in OWN_COLUMNS]
        ratios = [ratio_text(judge.ratio(result, label)) for label in OWN_COLUMNS[1:]]
        closed, opened = ([latencies(rows.get(label, {}), prefix) for label in OWN_COLUMNS[:3]] for prefix in ("", "open_"))
        out.append("| " + " | ".join([f"**{name}**: {result['title']}", number(rows["headgate"]["us"]["median"]), *ratios, "; ".join(others), *closed, *opened]) + " |")
    idle = scenarios.get("idle", {"rows": {}})["rows"]
    out += ["", "Idle clients: " + "; ".join(f"{label} {idle_text(row)}" for label, row in idle.items()) + "."] if idle else []
    out += ["", "| target | figure | 95 % | at most | |", "|---|---|---|---|---|"]
    for name, result in scenarios.items():
        out += [f"| {name}: {each['what']} | {each['figure']:.2f} | {interval_text(each)} | {each['target']:g} | {each['word']} |"
                for each in judge.verdicts(name, result)]
    out += [""] + [f"- {curve['title']} ({curve['unit']}): " + ", ".join([f"{x:,}: {y:,.1f}" for x, y in curve["points"]] + curve.get("notes", []))
                   for curve in data.get("growth", [])]
    out += [f"- {name}: {note}" for name, result in data["scenarios"].items() for note in result["notes"]]
    return "\n".join(out + [""])


def write_docs(path, data):
    with open(path) as doc:
        text = doc.read()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise RuntimeError(f"{path} has no place for the figures: the lines {BEGIN} and {END}")
    with open(path, "w") as doc:
        doc.write(before + begin + "\n" + markdown(data) + end + after)
