"""The picture as XML: what is in it, where it is, and what must not be."""

import re
import xml.etree.ElementTree as ET

import pytest

from rlproof.train.plot import Curve
from rlproof.train.svg import LEFT, POINTS, TALL, TOP, WIDTH, running_mean, svg

NS = {"s": "http://www.w3.org/2000/svg"}
REWARD = Curve("reward", "mean of 32 completions", (0.0, 0.5, 1.0), top=1.0)
CLIP = Curve("clip fraction", "share of tokens", (0.2, 0.1, 0.0), percent=True)


def drawn(*curves):
    return ET.fromstring(svg(curves, "A <title> & more", "What it shows."))


def points(path):
    return [tuple(map(float, dot.split())) for dot in path.get("d")[1:].split("L")]


def test_it_says_what_it_is():
    root = drawn(REWARD, CLIP)
    assert root.get("role") == "img"
    ids = {element.get("id"): element.text for element in root if element.get("id")}
    assert [ids[name] for name in root.get("aria-labelledby").split()] == [
        "A <title> & more",
        "What it shows.",
    ]
    said = [text.text for text in root.findall("s:text", NS)]
    assert "reward (mean of 32 completions)" in said
    assert {"1.0", "20%", "step"} <= set(said)


def test_values_are_at_their_places():
    (path,) = drawn(REWARD).findall("s:path", NS)
    # Steps 0, 1, 2 from the left axis to the right one; 0 at the floor, 1 at the top.
    right = points(path)[-1][0]
    assert points(path) == [(LEFT, TOP + TALL), ((LEFT + right) / 2, TOP + TALL / 2), (right, TOP)]
    assert right == WIDTH - 20


def test_it_stands_alone_in_light_and_dark():
    page = svg([REWARD, CLIP], "t", "d")
    assert not re.search(r"<script|onload|href|url\(|@import|<image|foreignObject", page)
    assert re.findall(r"https?://\S+?(?=\")", page) == ["http://www.w3.org/2000/svg"]
    assert "prefers-color-scheme: dark" in page
    used, both = set(re.findall(r"var\((--\w+)\)", page)), re.findall(r"(--\w+): #", page)
    assert used == set(both)
    assert all(both.count(name) == 2 for name in used)  # one for light, one for dark


def test_everything_is_inside():
    root = drawn(REWARD, CLIP, Curve("KL", "nats", (0.0, 1e9, -5.0)))
    _, _, width, height = map(float, root.get("viewBox").split())
    for path in root.findall("s:path", NS):
        assert all(0 <= x <= width and 0 <= y <= height for x, y in points(path))
    for text in root.findall("s:text", NS):
        assert 0 <= float(text.get("y")) <= height


@pytest.mark.parametrize("steps", [1, 2, 39, 40, POINTS + 1, 20_000])
def test_any_length(steps):
    values = tuple((n * 7919 % 101) / 100 for n in range(steps))
    page = svg([Curve("reward", "", values, top=1.0)], "t", "d")
    paths = ET.fromstring(page).findall("s:path", NS)
    assert len(paths) == (2 if steps >= 40 else 1)  # with a mean of two steps or more
    assert len(page) < 60_000
    if steps > POINTS:  # the extremes survive: 0 and 1 are among the values
        assert {y for _, y in points(paths[0])} >= {TOP, TOP + TALL}


def test_running_mean():
    # Windows of 3: (0+3)/2, (0+3+6)/3, (3+6+0)/3, (6+0)/2; of 1: the values.
    assert running_mean([0, 3, 6, 0], 3) == [1.5, 3, 3, 3]
    assert running_mean([0, 3, 6], 1) == [0, 3, 6]
