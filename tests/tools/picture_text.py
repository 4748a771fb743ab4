"""Checks the text of pictures: no text is cut, and no text overlaps other text.

usage: picture_text.py FILE...; a PNG must have a white margin on all sides. In an SVG, the rectangles around the
texts must lie inside the picture and apart. The width of text is that of DejaVu Sans, a wide font."""
import re
import struct
import sys
import zlib

MARGIN_PX = 2


def png_pixels(data):
    """Returns width, height, bytes a pixel and the rows of a PNG with 8 bits a channel."""
    at, packed, header = 8, b"", None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0], "CRC"
        header = struct.unpack(">IIBBBBB", body) if kind == b"IHDR" else header
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height, depth, colour, _, _, interlaced = header
    assert depth == 8 and colour in (2, 6) and not interlaced, header
    each = 3 if colour == 2 else 4
    raw, rows, above = zlib.decompress(packed), [], bytes(width * each)
    for y in range(height):
        kind, line = raw[y * (width * each + 1)], bytearray(raw[y * (width * each + 1) + 1:(y + 1) * (width * each + 1)])
        for i in range(len(line)) if kind else ():
            left, up = line[i - each] if i >= each else 0, above[i]
            corner = above[i - each] if i >= each else 0
            if kind == 4:
                guess = left + up - corner
                add = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
            else:
                add = (left, up, (left + up) // 2)[kind - 1]
            line[i] = (line[i] + add) & 255
        rows.append(bytes(line))
        above = line
    return width, height, each, rows


def judge_png(data):
    width, height, each, rows = png_pixels(data)
    white = b"\xff" * each
    edges = rows[:MARGIN_PX] + rows[-MARGIN_PX:]
    edges += [row[:MARGIN_PX * each] for row in rows] + [row[-MARGIN_PX * each:] for row in rows]
    if any(edge != white * (len(edge) // each) for edge in edges):
        yield "something reaches the edge"
    if all(row == white * width for row in rows):
        yield "nothing is drawn"


def width_em(character):
    if ord(character) > 127:
        return 1 if ord(character) > 0x7ff else 0.7
    return 0.97 if character in "mwMW@%" else 0.4 if character in "fijlrtI .,:;'!|()[]-/" else \
        0.7 if character.isupper() else 0.62


def svg_boxes(text):
    """Yields left, top, right, bottom and the string of each text. Each line of a title has its own dy or place."""
    pattern = (r'<g transform="translate\(([-\d.]+),([-\d.]+)\)(?: rotate\(([-\d.]+)\))?"[^>]*font-size="([\d.]+)"'
               r'\s+text-anchor="(\w+)">\s*<text>(.*?)</text>')
    for x, y, angle, size, anchor, inside in re.findall(pattern, text, re.S):
        words = re.sub(r"<[^>]*>", "", inside)
        words = words.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").replace("&quot;", '"')
        width = float(size) * sum(map(width_em, words))
        from_x = {"start": 0, "middle": -width / 2, "end": -width}[anchor]
        x, y, up, down = float(x), float(y), 0.72 * float(size), 0.2 * float(size)
        if angle and abs(float(angle)) > 45:  # the text runs upwards
            yield x - up, y - from_x - width, x + down, y - from_x, words
        else:
            yield x + from_x, y - up, x + from_x + width, y + down, words


def judge_svg(text):
    width, height = (float(re.search(r'^ *%s="([\d.]+)"' % side if side == "width" else r'%s="([\d.]+)"' % side,
                                     text, re.M).group(1)) for side in ("width", "height"))
    boxes = list(svg_boxes(text))
    if len(boxes) < 6 or len(boxes) != text.count("<text>"):
        yield "only %d of %d texts are understood" % (len(boxes), text.count("<text>"))
    for i, (left, top, right, bottom, words) in enumerate(boxes):
        if left < 0 or top < 0 or right > width or bottom > height:
            yield "%r is cut: %.0f %.0f %.0f %.0f" % (words, left, top, right, bottom)
        for other in boxes[:i]:
            if left < other[2] and other[0] < right and top < other[3] and other[1] < bottom:
                yield "%r overlaps %r" % (words, other[4])


bad = False
for path in sys.argv[1:]:
    content = open(path, "rb").read()
    for problem in judge_png(content) if content[:4] == b"\x89PNG" else judge_svg(content.decode()):
        print("%s: %s" % (path, problem))
        bad = True
sys.exit(bad)
