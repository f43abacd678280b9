"""Functions that read log-probs off a model: healthy ones are silent, each fault has its line."""

from math import exp, log

import pytest
from tests.support.checking import check_text
from tests.support.extractions import HEALTHY, IMPORTS

pytest.importorskip("torch")

KEPT = """
def get_per_token_logps(model, input_ids, attention_mask, logits_to_keep, temperature=1.0):
    logits = model(input_ids=input_ids, attention_mask=attention_mask).logits
    logits = logits[:, :-1, :]
    targets = input_ids[:, -logits_to_keep:]
    logits = logits[:, -logits_to_keep:] / temperature
    logps = torch.log_softmax(logits, dim=-1)
    return torch.gather(logps, -1, targets.unsqueeze(-1)).squeeze(-1)
"""
SUM = """
def sequence_log_prob(model, input_ids, attention_mask, response_mask):
    logits = model(input_ids, attention_mask=attention_mask).logits[:, :-1]
    lp = torch.log_softmax(logits, -1)
    lp = lp.gather(-1, input_ids[:, 1:].unsqueeze(-1)).squeeze(-1)
    return (lp * response_mask[:, 1:]).sum(-1)
"""
SPLIT = """
def avg_logprob(model, prompt_ids, completion_ids, completion_mask):
    ids = torch.cat((prompt_ids, completion_ids), 1)
    logits = model(ids).logits[:, prompt_ids.size(1) - 1 : -1]
    lp = logits.log_softmax(-1).gather(-1, completion_ids[..., None])[..., 0]
    return (lp * completion_mask).sum(1) / completion_mask.sum(1)
"""
LOG_SOFTMAX = "torch.log_softmax(logits, dim=-1)"
GATHER = "torch.gather(logps, -1, targets.unsqueeze(-1)).squeeze(-1)"
REDUCED = "(lp * response_mask[:, 1:]).sum(-1)"
EARLY = "targets = input_ids[:, -logits_to_keep:]\n    logits = logits[:, -logits_to_keep:]"
FAULTS = {
    "own logits": (KEPT, "    logits = logits[:, :-1, :]\n", "", "LGP003", 8),
    "shifted twice": (KEPT, "[:, :-1, :]", "[:, :-2, :]", "LGP003", 9),
    "one token early": (
        KEPT, EARLY, EARLY.replace("keep:]", "keep - 1 : -1]"), "LGP003", 9,
    ),
    "temperature unused": (KEPT, " / temperature", "", "LGP001", 5),
    "temperature multiplied": (KEPT, "/ temperature", "* temperature", "LGP008", 9),
    "temperature twice": (
        KEPT, LOG_SOFTMAX, "torch.log_softmax(logits / temperature, dim=-1)", "LGP008", 9,
    ),
    "over slots": (KEPT, "dim=-1", "dim=1", "LGP006", 10),
    "over rows": (KEPT, "dim=-1", "dim=0", "LGP006", 10),
    "logits": (KEPT, LOG_SOFTMAX, "logits", "MET004", 11),
    "probabilities": (KEPT, LOG_SOFTMAX, "torch.softmax(logits, dim=-1)", "LGP009", 10),
    "softmax twice": (
        KEPT, LOG_SOFTMAX, "torch.log_softmax(logits.softmax(-1), dim=-1)", "LGP009", 10,
    ),
    "log of softmax": (KEPT, LOG_SOFTMAX, "torch.log(logits.softmax(-1))", "LGP004", 10),
    "half precision": (
        KEPT, LOG_SOFTMAX, "torch.log_softmax(logits.bfloat16(), dim=-1)", "LGP005", 10,
    ),
    "mean over words": (KEPT, GATHER, "logps.mean(-1)", "LGP010", 11),
    "likeliest word": (KEPT, GATHER, "logps.max(-1).values", "LGP010", 11),
    "padding in the sum": (SUM, REDUCED, "lp[:, -response_mask.shape[1] :].sum(-1)", "MSK001", 9),
    "prompt in the sum": (SUM, REDUCED, "lp.sum(-1)", "MSK009", 9),
    "padding in the divisor": (
        SPLIT, "completion_mask.sum(1)", "completion_mask.size(1)", "MSK002", 9,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """All healthy functions in one script, and the lines of each."""
    return _together(tmp_path_factory, {name: text for name, (text, _) in HEALTHY.items()})


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    """All faulty functions in one script, under names of their own."""
    texts = {}
    for i, (name, (text, old, new, _, _)) in enumerate(FAULTS.items()):
        assert old in text
        texts[name] = text.replace(old, new).replace("(model,", f"_{i}(model,", 1)
    return _together(tmp_path_factory, texts)


def _together(factory, texts):
    script, lines = IMPORTS, {}
    for name, text in texts.items():
        first = script.count("\n")
        script += text
        lines[name] = range(first + 1, script.count("\n") + 1)
    return check_text(factory.mktemp("scripts"), script), lines


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_functions_are_silent_and_named(healthy, name):
    report, lines = healthy
    targets = [t for t in report.targets if t.line in lines[name]]
    names = {t.name for t in targets}
    assert [f for f in report.findings if f.place.line in lines[name]] == []
    assert [s for s in report.skipped if s.check.split()[-1] in names] == []
    assert any(HEALTHY[name][1].items() <= t.objective.items() for t in targets)


def test_healthy_functions_do_not_hide_each_other(healthy):
    report, _ = healthy
    assert (report.findings, report.skipped) == ((), ())
    assert report.checked == len(report.targets) >= len(HEALTHY)


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_alone_and_at_its_line(faulty, name):
    report, lines = faulty
    *_, code, line = FAULTS[name]
    at = lines[name][0] - 1 - IMPORTS.count("\n") + line
    found = [f for f in report.findings if f.place.line in lines[name]]
    assert [(f.code, f.place.line) for f in found] == [(code, at)]
    assert found[0].evidence.got != found[0].evidence.expected


@pytest.mark.parametrize("text", [KEPT, SUM, SPLIT])
def test_what_the_faults_were_planted_in_is_healthy(tmp_path, text):
    report = check_text(tmp_path, IMPORTS + text)
    assert (report.findings, report.skipped, report.checked) == ((), (), 1)


def test_evidence_can_be_recomputed(tmp_path):
    """Own logits: token 3 of a prompt of 2 is scored after 3 tokens, not after 2."""
    report = check_text(tmp_path, IMPORTS + KEPT.replace("    logits = logits[:, :-1, :]\n", ""))

    def after(n):
        return n - log(exp(n) + 10)

    evidence = report.findings[0].evidence
    assert evidence.got == pytest.approx([after(n) for n in (3, 4, 5)], abs=1e-4)
    assert evidence.expected == pytest.approx([after(n) for n in (2, 3, 4)], abs=1e-4)


UNMASKED = KEPT.replace(", attention_mask=attention_mask", "")


@pytest.mark.parametrize(("said", "codes"), [("", []), ('SIDE = "left"\n', ["MSK013"])])
def test_a_mask_is_missed_only_where_prompts_are_padded_on_the_left(tmp_path, said, codes):
    """Padding on the right stands behind every real token, and harms none."""
    report = check_text(tmp_path, IMPORTS + said + UNMASKED)
    assert [f.code for f in report.findings] == codes
    assert report.targets[0].objective["attention"] == "padding is read"


def test_log_softmax_of_a_log_softmax_changes_nothing(tmp_path):
    twice = KEPT.replace(LOG_SOFTMAX, f"torch.log_softmax({LOG_SOFTMAX}, dim=-1)")
    assert check_text(tmp_path, IMPORTS + twice).findings == ()


def test_an_unused_temperature_may_be_declared(tmp_path):
    text = KEPT.replace(" / temperature", "").replace(
        "    logits = model", "    del temperature\n    logits = model"
    )
    assert check_text(tmp_path, IMPORTS + text).findings == ()


def test_probabilities_are_no_fault_where_the_name_promises_none(tmp_path):
    text = KEPT.replace("get_per_token_logps", "token_probs").replace("log_softmax", "softmax")
    assert check_text(tmp_path, IMPORTS + text).findings == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "def token_logps(model, ids):\n    return model(ids, labels=ids)[0]\n",
            "computes no loss of its own",
        ),
        (
            "def token_logps(model, ids, adapter):\n    return model(ids).logits\n",
            "needs `adapter`, whose meaning is not recognised",
        ),
        (
            "def get_logps(model, batch):\n"
            "    return model(batch['input_ids'], **batch['extra']).logits\n",
            'needs batch["extra"], whose meaning is not recognised',
        ),
        (
            "def token_logps(model, ids):\n    return model(ids).logits.sum()\n",
            "returned nothing that has the shape of log-probs",
        ),
        (
            "def token_logps(model, ids):\n"
            "    return torch.log_softmax(model(ids).logits[:, :-1], -1)[..., 0] + 0.5\n",
            "unknown formula",
        ),
    ],
)
def test_what_can_not_be_judged_is_skipped_with_the_reason(tmp_path, text, reason):
    report = check_text(tmp_path, IMPORTS + text)
    assert report.findings == ()
    [skip] = report.skipped
    assert reason in skip.reason


METHOD = """
class Trainer(MissingTrainer):
    def _get_per_token_logps(self, input_ids, attention_mask, logits_to_keep, batch_size=None):
        batch_size = batch_size or input_ids.size(0)
        found = []
        for i in range(0, input_ids.size(0), batch_size):
            ids, mask = input_ids[i : i + batch_size], attention_mask[i : i + batch_size]
            with self.accelerator.autocast():
                inner = self.accelerator.unwrap_model(self.model)
                logits = inner(ids.to(self.device), attention_mask=mask).logits
            logits = logits[:, -logits_to_keep - 1 : -1] / self.args.temperature
            found.append(self._pick(logits, ids[:, -logits_to_keep:]))
        return torch.cat(found)

    @staticmethod
    def _pick(logits, index):
        return logits.log_softmax(-1).gather(-1, index.unsqueeze(-1)).squeeze(-1)
"""


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("", "", []),
        ("-logits_to_keep - 1 : -1]", "-logits_to_keep:]", [("LGP003", 15)]),
        ("/ self.args", "* self.args", [("LGP008", 15)]),
        ("log_softmax(-1)", "log_softmax(1)", [("LGP006", 21)]),
    ],
)
def test_methods_need_no_object_and_no_base_class(tmp_path, old, new, found):
    text = f"{IMPORTS}from somewhere import MissingTrainer\n{METHOD}".replace(old, new)
    report = check_text(tmp_path, text)
    assert [(f.code, f.place.line) for f in report.findings] == found
    assert [t.name for t in report.targets] == ["Trainer._get_per_token_logps"]
    assert report.skipped == ()


def test_a_method_that_uses_an_unknown_setting_says_so(tmp_path):
    text = METHOD.replace("self.args.temperature", "self.scale")
    report = check_text(tmp_path, f"{IMPORTS}from somewhere import MissingTrainer\n{text}")
    assert [s.reason for s in report.skipped] == ["needs `self.scale`, whose value is not known"]


TRAINS = """
{decorator}
def token_logps(model, input_ids):
    logits = model(input_ids).logits[:, :-1]
    return torch.log_softmax(logits, -1).gather(-1, input_ids[:, 1:, None]).squeeze(-1)


def policy_loss(new_logps, old_logps, advantages, mask):
    ratio = torch.exp(new_logps - old_logps)
    return -(ratio * advantages[:, None] * mask).sum() / mask.sum()


def step(model, ids, other_logps, advantages, mask):
    logps = token_logps(model, ids)
    return policy_loss({arguments}, advantages, mask)
"""


@pytest.mark.parametrize(
    ("decorator", "arguments", "codes"),
    [
        ("@torch.no_grad()", "logps, other_logps", ["LGP007"]),
        ("@torch.no_grad()", "other_logps, logps", []),
        ("@torch.enable_grad()", "logps, other_logps", []),
    ],
)
def test_only_new_log_probs_need_a_gradient(tmp_path, decorator, arguments, codes):
    text = TRAINS.format(decorator=decorator, arguments=arguments)
    report = check_text(tmp_path, IMPORTS + text)
    assert [f.code for f in report.findings if f.severity == "error"] == codes
