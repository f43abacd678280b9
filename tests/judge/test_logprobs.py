"""Token log-probs, entropies, KL estimates and masks as trainers write them: silent and named.

Spelled as in TRL, verl and OpenRLHF, and in plain Python.
"""

import pytest
from tests.support.checking import check_text, strong
from tests.support.sampling import one_in

LOG_PROBS = {
    "gather": (
        "def logps(logits, tokens):\n"
        "    return logits.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]\n",
        {},
    ),
    "logsumexp": (
        "def logps(logits, labels):\n"
        "    picked = torch.gather(logits, -1, labels.unsqueeze(-1)).squeeze(-1)\n"
        "    return picked - torch.stack([torch.logsumexp(x, dim=-1) for x in logits])\n",
        {},
    ),
    "causal shift": (
        "def logps(logits, input_ids, temperature=1.0):\n"
        "    logps = torch.log_softmax(logits[:, :-1].float() / temperature, dim=-1)\n"
        "    return logps.gather(2, input_ids[:, 1:, None]).squeeze(-1)\n",
        {"pairing": "next token", "temperature": "applied"},
    ),
    "rolled labels": (
        "def logps(logits, input_ids):\n"
        "    labels = torch.roll(input_ids, shifts=-1, dims=1)\n"
        "    return torch.log_softmax(logits, -1).gather(2, labels[..., None]).squeeze(-1)\n",
        {"pairing": "next token, wrapped"},
    ),
    "padded in front": (
        "def logps(logits, input_ids):\n"
        "    lp = torch.log_softmax(logits[:, :-1], -1).gather(2, input_ids[:, 1:, None])\n"
        "    return torch.nn.functional.pad(lp.squeeze(-1), (1, 0))\n",
        {"pairing": "next token"},
    ),
    "sum with a mask": (
        "def logps(logits, labels, loss_mask):\n"
        "    logps = torch.log_softmax(logits, -1).gather(2, labels.unsqueeze(2)).squeeze(2)\n"
        "    return (logps * loss_mask).sum(-1)\n",
        {"reduction": "sum"},
    ),
    "cross entropy": (
        "def nll_logps(logits, labels):\n"
        "    flat = torch.nn.functional.cross_entropy(\n"
        "        logits.transpose(1, 2), labels, reduction='none')\n"
        "    return flat\n",
        {"sign": "negative"},
    ),
    "distribution": (
        "def log_prob(logits, actions):\n"
        "    return torch.distributions.Categorical(logits=logits).log_prob(actions)\n",
        {},
    ),
    "with entropy": (
        "def logps_and_entropy(logits, tokens, temperature=0.7):\n"
        "    logps = torch.log_softmax(logits / temperature, -1)\n"
        "    entropy = -(logps.exp() * logps).sum(-1)\n"
        "    return logps.gather(-1, tokens[..., None])[..., 0], entropy\n",
        {"temperature": "applied"},
    ),
    "table": (
        "VOCAB = 6\n"
        "def logps(theta, rows, tokens):\n"
        "    out = []\n"
        "    for p, line in zip(rows, tokens):\n"
        "        row = [float(theta[p][v]) for v in range(VOCAB)]\n"
        "        top = max(row)\n"
        "        z = top + math.log(sum(math.exp(x - top) for x in row))\n"
        "        out.append([row[t] - z for t in line])\n"
        "    return out\n",
        {},
    ),
}
OTHERS = {
    "entropy": "def entropy_from_logits(logits):\n"
    "    p = torch.softmax(logits, -1)\n"
    "    return torch.logsumexp(logits, -1) - (p * logits).sum(-1)\n",
    "entropy in bits": "def entropy(logits):\n"
    "    p = torch.softmax(logits, -1)\n"
    "    return -(p * p.log2()).sum(-1).mean()\n",
    "entropy of rows": "def entropy(logits):\n"
    "    p = torch.softmax(logits, dim=1)\n"
    "    return -(p * torch.log(p + 1e-9)).sum(dim=1).mean()\n",
    "entropy over a mask": "def mean_entropy(logits, mask):\n"
    "    each = torch.distributions.Categorical(logits=logits).entropy()\n"
    "    return (each * mask).sum() / mask.sum()\n",
    "sampled entropy": "def entropy(logps, mask):\n    return -(logps * mask).sum() / mask.sum()\n",
    "k1 to old": "def approx_kl(logps, old_logps, mask):\n"
    "    return ((old_logps - logps) * mask).sum() / mask.sum()\n",
    "k3 to reference": "def kl(logps, ref_logps, mask):\n"
    "    d = ref_logps - logps\n"
    "    return ((d.exp() - d - 1) * mask).sum() / mask.sum()\n",
    "k1 per token": "def kl(logps, ref_logps):\n    return logps - ref_logps\n",
    "reward penalty": "def kl_penalty(logps, ref_logps):\n    return 0.1 * (ref_logps - logps)\n",
    "forward": "def forward_kl(logps, ref_logps):\n    return (ref_logps - logps).mean()\n",
    "reference samples": "def kl(logps, ref_logps):\n"
    '    """KL(ref || policy), on samples of the reference."""\n'
    "    return (ref_logps - logps).mean()\n",
    "completion mask": "def completion_mask(completion_ids, eos_token_id):\n"
    "    ends = completion_ids == eos_token_id\n"
    "    return (ends.cumsum(1) - ends.int() == 0).int()\n",
    "finished": "def finished_mask(tokens, eos_id):\n    return (tokens == eos_id).any(1)\n",
}
IMPORTS = "import math\n\nimport torch\n\n\n"


@pytest.mark.parametrize("name", one_in(3, LOG_PROBS))
def test_log_probs_are_silent_and_named(tmp_path, name):
    pytest.importorskip("torch")
    text, coordinates = LOG_PROBS[name]
    report = check_text(tmp_path, IMPORTS + text)
    assert (report.findings, report.skipped) == ((), ())
    [target] = report.targets
    assert target.objective == {"log_probs": "log-softmax", **coordinates}


@pytest.mark.parametrize("name", one_in(3, OTHERS))
def test_small_functions_are_silent(tmp_path, name):
    pytest.importorskip("torch")
    report = check_text(tmp_path, IMPORTS + OTHERS[name])
    assert (report.findings, report.skipped, report.checked) == ((), (), 1)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("torch.log_softmax(logits, -1).half()", "LGP005"),
        ("torch.log(torch.softmax(logits, -1))", "LGP004"),
        ("torch.log_softmax(logits, 0)", "LGP006"),
        ("logits - torch.logsumexp(logits, (0, 1, 2), keepdim=True)", "LGP006"),
        ("torch.log_softmax(torch.roll(logits, -1, 1), -1)", "LGP003"),
        ("torch.log_softmax(logits, -1) / temperature", "LGP002"),
        ("torch.log_softmax(logits, -1) + 0.5", None),  # unknown, so nothing is said
    ],
)
def test_faults_of_the_log_softmax(tmp_path, body, code):
    pytest.importorskip("torch")
    heat = ", temperature=1.0" * ("temperature" in body)  # an unused one is LGP001
    text = (
        f"{IMPORTS}def logps(logits, tokens{heat}):\n    table = {body}\n"
        "    return table.gather(-1, tokens[..., None])[..., 0]\n"
    )
    report = check_text(tmp_path, text)
    assert strong(report) == [code] * (code is not None)
    assert all(finding.place.line == 7 for finding in report.findings)


def test_a_table_of_floats_overflows_far_out_only(tmp_path):
    """In float64 exp overflows beyond 709, where no table of a small trainer goes: a note."""
    text = (
        "import math\n\n\ndef logps(theta, rows, tokens):\n"
        "    z = [math.log(sum(math.exp(x) for x in row)) for row in theta]\n"
        "    return [[theta[p][t] - z[p] for t in line] for p, line in zip(rows, tokens)]\n"
    )
    report = check_text(tmp_path, text)
    assert [(f.code, f.severity) for f in report.findings] == [("LGP004", "note")]


def test_a_model_is_no_table(tmp_path):
    text = "def token_logps(model, input_ids):\n    return model(input_ids)\n"
    assert [s.reason for s in check_text(tmp_path, text).skipped] == [
        "needs a model, and the one that stands in for it needs torch"
    ]
