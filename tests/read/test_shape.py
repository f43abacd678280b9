"""A clipped surrogate is recognised by its shape alone, and nothing else is."""

import ast

import pytest
from tests.support.checking import check_text, strong

from rlproof.read.names import Slot
from rlproof.read.roles import recognise
from rlproof.read.shape import local_slots, surrogate_slots, used_as
from rlproof.read.targets import Role

LOOP = """\
def g(p, q, s, w, v):
    total, n = 0.0, 0
    for i, z in enumerate(w):
        for t in range(len(v[i])):
            if v[i][t]:
                h = math.exp(p[i][t] - q[i][t])
                d = s[i][t] - p[i][t]
                total -= min(h * z, min(max(h, 0.8), 1.2) * z) - 0.1 * (math.exp(d) - d - 1)
                n += 1
    return total / n
"""
ARRAY = """\
def g(x, y, z):
    u = x - y
    h = torch.exp(u)
    return torch.max(-h * z, -h.clamp(0.8, 1.2) * z).mean()
"""


def slots(text):
    node = ast.parse(text).body[0]
    return surrogate_slots(node, [argument.arg for argument in node.args.args])


def test_a_loop_and_an_array_expression():
    assert slots(LOOP) == {
        "p": Slot.NEW, "q": Slot.OLD, "w": Slot.ADVANTAGES, "s": Slot.REF,
    }  # fmt: skip
    assert slots(ARRAY) == {"x": Slot.NEW, "y": Slot.OLD, "z": Slot.ADVANTAGES}


@pytest.mark.parametrize(
    "body",
    [
        "np.exp(-((x - y) ** 2)) * z",  # a kernel
        "np.exp(x - y) / np.exp(z - y).sum()",  # a softmax
        "np.exp(x - y) * z",  # importance sampling of anything
        "np.minimum(x * z, y * z)",
        "np.maximum(np.exp(x - y), z)",  # a choice, but no product
        "np.minimum(np.exp(x) * z, np.exp(y) * z)",
    ],
)
def test_other_shapes_are_no_loss(body):
    assert slots(f"def g(x, y, z):\n    return {body}\n") == {}
    assert recognise(ast.parse(f"def g(x, y, z):\n    return {body}\n")) == ()


def test_it_is_judged_like_any_other(tmp_path):
    text = "import torch\n\n\n" + ARRAY.replace("z):", 'z):\n    """A loss to minimise."""')
    pytest.importorskip("torch")
    healthy = check_text(tmp_path, text)
    assert [(t.role, t.objective["surrogate"]) for t in healthy.targets] == [
        (Role.LOSS, "min-clip")
    ]
    assert strong(healthy) == []
    assert strong(check_text(tmp_path, text.replace("torch.max(", "torch.min("))) == ["SUR013"]


COUNTED = """
def f(a, b, c, d, e):
    r = (a - b).exp()
    s = torch.min(r * c, r.clamp(1 - e, 1 + e) * c)
    return -({product}).sum() / {divisor}
"""


@pytest.mark.parametrize(
    ("product", "divisor", "slots"),
    [
        ("s * d", "d.sum()", {"d": Slot.MASK, "e": Slot.CLIP}),
        ("s * d", "d.sum().clamp(min=1)", {"d": Slot.MASK, "e": Slot.CLIP}),
        ("s * d", "len(d)", {"e": Slot.CLIP}),  # a weight that nothing counts
        ("s", "d.sum()", {"e": Slot.CLIP}),
    ],
)
def test_mask_and_clip_range_by_their_use(product, divisor, slots):
    node = ast.parse(COUNTED.format(product=product, divisor=divisor)).body[0]
    assert used_as(node, ["d", "e"]) == slots


def test_variables_of_a_loop_by_the_shape_of_what_is_made_of_them():
    body = """
def step(self, data):
    cur = self.net(data.x)
    prev, z = data.prev, data.z
    z = data.z
    w = data["w"]
    r = torch.exp(cur - data.prev)
    p = data.prev
    r = torch.exp(cur - p)
    out = -(torch.min(r * z, r.clamp(0.8, 1.2) * z) * w).sum() / w.sum()
"""
    assert local_slots(ast.parse(body).body[0]) == {
        "cur": Slot.NEW, "p": Slot.OLD, "z": Slot.ADVANTAGES, "w": Slot.MASK,
    }  # fmt: skip


def test_no_shape_no_slots():
    body = "def f(x):\n    y = g(x)\n    z = torch.exp(y)\n    return torch.max(z, y)"
    assert local_slots(ast.parse(body).body[0]) == {}
