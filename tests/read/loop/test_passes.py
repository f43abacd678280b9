from tests.support.reading_loops import loop_of


def forwards(loop):
    return [(f.model[1].split(":")[-1], f.gradient, f.adapter) for f in loop.passes.forwards]


def test_models_behind_parameters_and_contexts():
    loop = loop_of("""
        def score(net_model, ids):
            return net_model(ids).logits.log_softmax(-1)

        def train(model, ref_model, ids):
            with torch.no_grad():
                ref = score(ref_model, ids)
                with model.disable_adapter():
                    base = score(model, ids)
            new = score(model, ids)
            new.sum().backward()
    """)
    assert forwards(loop) == [
        ("ref_model", False, False),
        ("model", False, True),
        ("model", True, False),
    ]


def test_another_name_for_a_module():
    loop = loop_of("""
        def train(model, ids):
            ref_model = model.eval()
            copied_model = copy.deepcopy(model)
            a = ref_model(ids)
            b = copied_model(ids)
            a.backward()
    """)
    assert [name for name, _, _ in forwards(loop)] == ["model", "copied_model"]


def test_a_name_that_is_given_something_else_later_is_no_alias():
    loop = loop_of("""
        def train(model, ids):
            ref_model = model
            model = copy.deepcopy(model)
            a = ref_model(ids)
            a.backward()
    """)
    assert [name for name, _, _ in forwards(loop)] == ["ref_model"]


def test_two_attributes_set_to_one_parameter_are_one_object():
    loop = loop_of("""
        class Trainer:
            def __init__(self, model, other):
                self.model = model
                self.ref_model = model
                self.old_model = other

            def train(self, ids):
                a = self.model(ids) - self.ref_model(ids) - self.old_model(ids)
                a.backward()
    """)
    roots = [f.model for f in loop.passes.forwards]
    assert roots[0] == roots[1] != roots[2]


def ratio(text):
    loop = loop_of(text)
    [found] = loop.passes.ratios
    return [sorted(trail) for trail in found.difference.trails]


def test_a_ratio_through_names_dictionaries_and_helpers():
    # forward 0 is the old one; a pair is (number of the forward pass, detached?)
    assert ratio("""
        def collect(model, ids):
            with torch.no_grad():
                old = model(ids).logits
            return {"old": old, "ids": ids}

        def update(model, batch):
            delta = model(batch["ids"]).logits - batch["old"]
            r = torch.exp(delta.clamp(-5, 5))
            r.mean().backward()

        def train(model, ids):
            batch = collect(model, ids)
            update(model, batch)
    """) == [[(1, False)], [(0, True)]]


def test_records_and_detached_copies():
    assert ratio("""
        def train(model, ids):
            sample = Sample(old=model(ids).logits.detach(), ids=ids)
            new = model(sample.ids).logits
            (new - sample.old).exp().mean().backward()
    """) == [[(1, False)], [(0, True)]]


def test_a_loss_of_other_code_by_the_names_of_what_it_is_given():
    assert ratio("""
        def train(model, ids):
            old_logps = model(ids).detach()
            logps = model(ids)
            grpo_loss(logps, old_logps, advantages, mask).backward()
    """) == [[(1, False)], [(0, True)]]


def test_a_branch_adds_to_what_was_there():
    assert ratio("""
        def train(model, ids, old):
            new = model(ids)
            old = new.detach()
            if stored:
                old = model(ids).detach()
            torch.exp(new - old).mean().backward()
    """)[1] == [(0, True), (1, True)]


def test_a_choice_carries_a_mark_of_its_own():
    new, old = ratio("""
        def train(model, ids, stored):
            new = model(ids)
            old = stored if stored is not None else new.detach()
            torch.exp(new - old).mean().backward()
    """)
    assert new == [(0, False)]
    assert old == [(-1, True), (0, True)]


def test_a_choice_between_nothing_known_carries_nothing():
    loop = loop_of("""
        def train(model, a, b, c):
            torch.exp((a or b) - (b if c else a)).mean().backward()
    """)
    assert loop.passes.ratios == []
