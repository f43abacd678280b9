import ast
from textwrap import dedent

from tests.support.reading_loops import loop_of, loops_of

from rlproof.read.loop.trace import bind, traces


def lines(loop):
    return [step.node.lineno for step in loop.trace.steps]


def test_a_local_call_is_written_out_before_its_statement():
    loop = loop_of("""
        def step(loss):
            loss.backward()
            return loss

        def train(model):
            for batch in data:
                x = step(model(batch))
    """)
    assert loop.trace.root.name == "train"
    assert lines(loop) == [7, 3, 4, 8]
    inside = loop.trace.steps[1]
    assert [type(around).__name__ for around in inside.loops] == ["For"]
    assert inside.frame.caller is loop.trace.root


def test_methods_closures_and_the_main_guard_are_followed():
    loop = loop_of("""
        class Trainer:
            def step(self):
                def go():
                    self.loss.backward()
                go()

            def fit(self):
                while True:
                    self.step()

        def main():
            trainer = Trainer()
            trainer.fit()

        if __name__ == "__main__":
            main()
    """)
    assert loop.trace.root.name == "<module>"
    backward = next(s for s in loop.trace.steps if s.node.lineno == 5)
    assert len(backward.loops) == 1
    assert backward.branches == ()
    assert loop.functions >= {"go", "step", "Trainer.fit", "main"}


def test_recursion_ends_and_unrelated_functions_are_left_out():
    read = loops_of("""
        def walk(x):
            walk(x)
            x.backward()

        def other(x):
            return x + 1
    """)
    assert [loop.trace.root.name for loop in read] == ["<module>", "walk"]


def test_branches_know_how_many_loops_are_around_them():
    loop = loop_of("""
        def train(flag):
            if flag:
                for epoch in range(3):
                    if epoch:
                        loss.backward()
    """)
    backward = loop.trace.steps[-1]
    assert len(backward.branches) == 2
    assert len(backward.branches_in(backward.loops[0])) == 1


def test_arguments_are_bound_by_place_and_name():
    tree = ast.parse("def f(self, a, b=1, *, c=2): ...\nf(x, c=y)\ng(*z, b=w)")
    call = tree.body[1].value
    given = bind(call, tree.body[0], skip=True)
    assert {name: ast.unparse(value) for name, value in given.items()} == {"a": "x", "c": "y"}
    starred = bind(tree.body[2].value, tree.body[0], skip=True)
    assert {name: ast.unparse(value) for name, value in starred.items()} == {"b": "w"}


def test_a_very_long_program_is_cut_short():
    calls = "\n".join("    f()" for _ in range(200))
    text = (
        dedent("""
        def f():
        {0}
        def g():
        {1}
        def h():
        {2}
    """).format("    x = 1\n" * 200, calls, calls.replace("f()", "g()"))
        + "    loss.backward()\n"
    )
    cut = traces(ast.parse(text), "backward")[-1]
    assert not cut.complete
    assert 20_000 <= len(cut.steps) < 21_000  # the callers of the last step are closed
