"""Draws a flame graph as an SVG: one rectangle per frame, as wide as its share of the samples, callees above callers."""
import html
import zlib

ROW, WIDTH, LEAST = 17, 1200, 0.0008  # frames narrower than this share are not drawn


class Frame:
    def __init__(self):
        self.cost, self.callees = 0, {}

    def add(self, stack, cost):
        """`stack`: outermost first."""
        frame = self
        frame.cost += cost
        for name in stack:
            frame = frame.callees.setdefault(name, Frame())
            frame.cost += cost

    def depth(self, least):
        return 1 + max((each.depth(least) for each in self.callees.values() if each.cost >= least), default=0)


def hue(name):
    """Kernel blue, libraries grey, headgate orange; the shade depends on the name."""
    shade = zlib.crc32(name.encode()) % 25
    if name.endswith("_[k]"):
        return f"hsl(205, 60%, {62 + shade // 2}%)"
    if "headgate" in name:
        return f"hsl({20 + shade}, 85%, {58 + shade // 3}%)"
    return f"hsl(45, 20%, {66 + shade // 2}%)"


def draw(root, title):
    least = root.cost * LEAST
    height = root.depth(least) * ROW + 60
    out = []

    def put(name, frame, left, level):
        width = frame.cost / root.cost * WIDTH
        y = height - 10 - (level + 1) * ROW
        shown = html.escape(name.removesuffix("_[k]"))
        text = ""
        if width > 30:
            most = int(width / 6.6)
            short = name.removesuffix("_[k]").removeprefix("headgate::")
            text = f'<text x="{left + 3:.1f}" y="{y + 12}">{html.escape(short if len(short) <= most else short[:max(most - 1, 1)] + "…")}</text>'
        out.append(f'<g><title>{shown}: {frame.cost / root.cost:.2%}, {frame.cost:,} samples</title>'
                   f'<rect x="{left:.1f}" y="{y}" width="{max(width - 0.4, 0.3):.1f}" height="{ROW - 1}" fill="{hue(name)}"/>{text}</g>')
        for callee, inner in sorted(frame.callees.items()):
            if inner.cost >= least:
                put(callee, inner, left, level + 1)
            left += inner.cost / root.cost * WIDTH
    put("all", root, 0, 0)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">\n'
            f'<style>text {{ font: 11px monospace; fill: #111; pointer-events: none }} .head {{ font: 15px sans-serif }}</style>\n'
            f'<rect width="100%" height="100%" fill="#fff"/><text class="head" x="8" y="22">{html.escape(title)}</text>\n'
            f'<text x="8" y="40">width: share of all samples; orange: headgate, blue: the kernel, grey: libraries. Point at a frame for its name and share.</text>\n'
            + "\n".join(out) + "\n</svg>\n")
