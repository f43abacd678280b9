"""Reads what the reports write: HTML strictly, and MathML as the number that it denotes."""

import math
from html.parser import HTMLParser
from xml.etree import ElementTree

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Read(HTMLParser):
    """A page: its tags, ids, links and headings. Raises where tags don't nest."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.ids, self.links, self.headings, self.math = [], [], [], [], []
        self.attributes, self.text, self._open = [], [], []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        self.attributes.append((tag, attrs))
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if "href" in attrs:
            self.links.append(attrs["href"])
        if tag in {"h1", "h2", "h3", "h4", "h5", "h6"}:
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag):
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1] == tag, f"</{tag}> closes <{self._open[-1]}>"
        self._open.pop()

    def handle_data(self, data):
        if "math" in self._open:
            self.math.append(data)
        if not {"script", "style"} & set(self._open):
            self.text.append(data)

    @property
    def words(self):
        """All visible text."""
        return "".join(self.text)


class _Iverson:
    """`[condition]` is 1 or 0."""

    def __getitem__(self, condition):
        return float(condition)


FUNCTIONS = {
    "min": min,
    "max": max,
    "abs": abs,
    "log": math.log,
    "clip": lambda x, a, b: min(max(x, a), b),
    "sg": lambda x: x,
    "sign": lambda x: math.copysign(1, x) if x else 0.0,
    "Iverson": _Iverson(),
    "e": math.e,
}
_SIGNS = {"−": "-", "·": "*", "≤": "<=", "≥": ">=", "∕": "/"}
_OPERAND, _FUNCTION, _SIGN, _OPEN, _CLOSE = range(5)


def value_of(mathml, names):
    """The right-hand side of `symbol = …`, at these values of its identifiers.

    An identifier with an index is one name: π with index θ is `πθ`.
    """
    row = _row(ElementTree.fromstring(str(mathml).replace("\xa0", " ")))
    assert row.count("=") - sum(row.count(f"{c}=") for c in "<>") == 1, row
    return eval(row.split("=", 1)[1], {"__builtins__": {}}, FUNCTIONS | names)


def _row(element):
    parts = []
    for child in element:
        parts += _parts(child)
    return _joined(parts)


def _joined(parts):
    """Multiply what stands side by side; a function without brackets takes what follows it."""
    text, before = "", _SIGN
    for kind, part in parts:
        if before in (_OPERAND, _CLOSE) and kind in (_OPERAND, _FUNCTION, _OPEN):
            text += "*"
        if before == _FUNCTION and kind == _OPERAND:
            part = f"({part})"
        text, before = text + part, kind
    return text


def _parts(element):
    tag, text = element.tag, (element.text or "").strip()
    match tag:
        case "mspace":
            return []
        case "mtext":
            return [(_SIGN, f" {text} ")] if text else []
        case "mrow" | "mstyle" | "math":
            if len(element) > 1 and len(element[-1]) == 1 and element[-1][0].tag == "mtable":
                return [(_OPERAND, _cases(element[-1][0]))]
            if any(child.tag == "mtable" for child in element):
                return [(_OPERAND, _cases(next(c for c in element if c.tag == "mtable")))]
            return [part for child in element for part in _parts(child)]
        case "mfrac":
            return [(_OPERAND, f"(({_inside(element[0])})/({_inside(element[1])}))")]
        case "msub":
            return [(_OPERAND, "".join("".join(element.itertext()).split()).replace(",", ""))]
        case "msup":
            base, power = _inside(element[0]), _inside(element[1])
            if base == ")":  # latex2mathml hangs the power on the bracket alone
                return [(_CLOSE, f")**({power})")]
            return [(_OPERAND, f"(({base})**({power}))")]
        case "mo" if text.isalpha():
            return [(_FUNCTION, text)]
        case "mo":
            return [_operator(text, element)]
    return [(_OPERAND, text)]


def _inside(element):
    return _joined(_parts(element))


def _operator(text, element):
    if text in "([":
        return (_OPEN, "(" if text == "(" else "Iverson[")
    if text in ")]":
        return (_CLOSE, text)
    if text == "|":
        return (_OPEN, "abs(") if element.get("form") == "prefix" else (_CLOSE, ")")
    return (_SIGN, _SIGNS.get(text, text))


def _cases(table):
    rows = [[_row(cell) for cell in row] for row in table]
    text = "None"
    for value, condition in reversed(rows):
        text = f"(({value}) if ({condition}) else {text})"
    return text
