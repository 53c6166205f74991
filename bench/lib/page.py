"""The figures as one HTML page: plots drawn here as inline SVG, nothing fetched from anywhere."""
import html
import math

from lib import judge, machine, report

COLOURS = {"headgate": "#0b6bcb", "floor": "#9aa5b1", "nginx": "#2f9e44", "haproxy": "#c2410c", "caddy": "#8b5cf6", "nginx+lua": "#5c940d"}
ITSELF = "#7fb2e5"

STYLE = """
:root { --ink: #1f2933; --soft: #5f6c7b; --line: #dde3ea; --page: #fff; --box: #f7f9fb; --good: #1a7f37; --bad: #c92a2a }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --soft: #9aa5b1; --line: #39434f; --page: #14181d; --box: #1b2027; --good: #57c46f; --bad: #ff8787 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 0 auto; max-width: 1100px; padding: 24px }
h1 { font-size: 26px; margin: 0 0 4px } h2 { font-size: 19px; margin: 36px 0 8px } h3 { font-size: 15px; margin: 0 0 6px }
p, .note { color: var(--soft); margin: 4px 0 } section { border-top: 1px solid var(--line); padding: 16px 0 }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums } .scroll { overflow-x: auto }
th, td { text-align: right; padding: 3px 10px; border-bottom: 1px solid var(--line); white-space: nowrap } th { color: var(--soft); font-weight: 500 }
th:first-child, td:first-child, td.text { text-align: left; white-space: normal } .met { color: var(--good) } .missed { color: var(--bad); font-weight: 600 }
svg { display: block; max-width: 100%; height: auto } svg text { fill: var(--ink); font: 12px system-ui, sans-serif } svg .soft { fill: var(--soft) }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(340px, 1fr)); gap: 16px } .plot { background: var(--box); border-radius: 8px; padding: 12px }
"""


def colour(label):
    return COLOURS.get(label, ITSELF)


def element(name, text="", **attributes):
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"' for key, value in attributes.items())
    return f"<{name}{written}>{text}</{name}>"


def bars(rows, figure, unit):
    """One bar a row, its spread as a whisker. `figure`: row -> {median, least, most} or None."""
    shown = [(label, figure(row)) for label, row in rows.items() if figure(row)]
    if not shown:
        return ""
    widest = max(value["most"] for _, value in shown) or 1
    left, width, step = 90, 380, 26
    out = []
    for i, (label, value) in enumerate(shown):
        y, end = i * step + 4, left + value["median"] / widest * width
        out.append(element("text", html.escape(label), x=left - 8, y=y + 14, text_anchor="end"))
        out.append(element("rect", x=left, y=y, width=f"{end - left:.1f}", height=18, rx=2, fill=colour(label)))
        low, high = (left + value[edge] / widest * width for edge in ("least", "most"))
        out.append(element("path", d=f"M{low:.1f} {y + 9}H{high:.1f}M{low:.1f} {y + 5}v8M{high:.1f} {y + 5}v8", stroke="var(--ink)", fill="none"))
        out.append(element("text", report.number(value["median"], 0 if value["median"] >= 1000 else 1) + f" {unit}", x=f"{high + 8:.1f}", y=y + 14))
    return element("svg", "".join(out), viewBox=f"0 0 {left + width + 110} {len(shown) * step + 4}", width=left + width + 110, role="img")


def round_up(value):
    """The next of 1, 2, 2.5, 5, 10 … above."""
    power = 10 ** math.floor(math.log10(value)) if value > 0 else 1
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value)


def short(n):
    if n >= 1_000_000:
        return f"{n / 1_000_000:g} M"
    return f"{n / 1000:g} k" if n >= 1000 else f"{n:g}"


def curve_plot(curve):
    """Points over an x that is logarithmic unless it begins at 0, from an honest zero of y."""
    points, left, top, width, height, inset = curve["points"], 48, 10, 300, 150, 24
    if not points:
        return ""
    highest = round_up(max(y for _, y in points) * 1.05)
    scale = [x if points[0][0] == 0 else math.log10(x) for x, _ in points]
    span = (scale[-1] - scale[0]) or 1
    xs = [left + inset + (s - scale[0]) / span * (width - inset) for s in scale]
    ys = [top + height - y / highest * height for _, y in points]
    out = []
    for part in range(5):
        y = top + height * part / 4
        out.append(element("line", x1=left, x2=left + width, y1=y, y2=y, stroke="var(--line)"))
        out.append(element("text", f"{highest * (4 - part) / 4:g}", x=left - 6, y=y + 4, text_anchor="end", class_="soft"))
    out.append(element("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys)), fill="none", stroke=colour("headgate"), stroke_width=2))
    for (x, y), px, py in zip(points, xs, ys):
        out.append(element("circle", element("title", f"{x:,}: {y:,.2f} {curve['unit']}"), cx=f"{px:.1f}", cy=f"{py:.1f}", r=3.5, fill=colour("headgate")))
        out.append(element("text", f"{y:,.1f}" if y < 1000 else f"{y:,.0f}", x=f"{px:.1f}", y=f"{py - 8:.1f}", text_anchor="middle"))
        out.append(element("text", short(x), x=f"{px:.1f}", y=top + height + 16, text_anchor="middle", class_="soft"))
    svg = element("svg", "".join(out), viewBox=f"0 0 {left + width + 24} {top + height + 24}", role="img")
    return element("div", element("h3", html.escape(curve["title"])) + element("p", html.escape("; ".join([f"{curve['unit']}, by {curve['by']}", *curve.get("notes", [])]))) + svg, class_="plot")


def ratio_cell(text):
    return element("td", html.escape(text), class_="missed" if "above" in text else "met" if "≤" in text else "")


def scenario_section(name, result):
    rows = result["rows"]
    parts = [element("h3", html.escape(f"{name}: {result['title']}"))]
    if any("idle" in row for row in rows.values()):
        parts.append(bars(rows, lambda row: {edge: row["idle"]["kib"] for edge in ("median", "least", "most")}, "KiB"))
    else:
        parts.append(bars(rows, lambda row: row.get("us"), "µs"))
        heads = "".join(element("th", head) for head in ["", *report.HEADS])
        lines = ""
        for label in rows:
            cells = report.cells(name, result, label)
            lines += element("tr", element("td", html.escape(label)) + "".join(
                ratio_cell(cell) if i == 2 else element("td", html.escape(cell)) for i, cell in enumerate(cells)))
        parts.append(element("div", element("table", element("tr", heads) + lines), class_="scroll"))
    if result.get("latency_rate"):
        parts.append(element("p", f"Latency at {result['latency_rate']:,.0f} requests/s for all, half of what headgate carried: what requests waited for the proxy; "
                                  "“until read” is p99 with what load and origin took in it."))
    parts += [element("p", html.escape(note)) for note in judge.notes(name, result)]
    return element("section", "".join(parts), id=name)


def targets_section(scenarios):
    lines = ""
    for name, result in scenarios.items():
        for each in judge.verdicts(name, result):
            lines += element("tr", element("td", html.escape(f"{name}: {each['what']}")) + element("td", f"{each['figure']:.2f}")
                             + element("td", report.interval_text(each)[2:]) + element("td", f"≤ {each['target']:g}")
                             + element("td", each["word"], class_=each["word"].split()[0]))
    heads = "".join(element("th", head) for head in ("target", "figure", "95 %", "at most", ""))
    return element("h2", "Targets") + element("table", element("tr", heads) + lines) if lines else ""


def write(path, data):
    facts = "".join(element("tr", element("td", html.escape(what)) + element("td", html.escape(text), class_="text"))
                    for what, text in machine.in_words(data["machine"]))
    scenarios = data["scenarios"]
    body = [
        element("h1", "headgate, measured"),
        element("p", "CPU µs a request of the proxy's process, one worker on one core, access log on: less is better. Whiskers are the least and the most "
                     "of the rounds, which were interleaved. “headgate is” gives headgate's CPU in those of that row."),
        element("table", facts), targets_section(scenarios),
    ]
    if scenarios:
        body.append(element("h2", "Scenarios"))
        body.append(element("p", html.escape(report.busy_note(scenarios))))
        body += [scenario_section(name, result) for name, result in scenarios.items()]
    if data.get("growth"):
        body += [element("h2", "How cost grows"), element("div", "".join(map(curve_plot, data["growth"])), class_="plots")]
    with open(path, "w") as out:
        out.write(f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
                  f"<title>headgate, measured</title><style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n")
