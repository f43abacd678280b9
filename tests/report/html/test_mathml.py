"""LaTeX to MathML; what can't be rendered is refused."""

import pytest
from tests.report.reading import Read

from rlproof.report.html.mathml import FormulaError, mathml
from rlproof.report.html.prose import markdown


def test_a_fraction():
    text = mathml(r"\rho = \frac{a}{b}")
    assert text == (
        '<math display="block"><mrow><mi>ρ</mi><mo>=</mo><mfrac><mrow><mi>a</mi></mrow>'
        "<mrow><mi>b</mi></mrow></mfrac></mrow></math>"
    )


def test_words_are_operators_with_space_only_where_it_belongs():
    text = mathml(r"x \log y", display=False)
    assert '<mo lspace="0.17em" rspace="0.17em">log</mo>' in text
    assert '<mo lspace="0" rspace="0">min</mo>' in mathml(r"\min(x)")


@pytest.mark.parametrize(
    "latex",
    [
        r"\nosuch",
        "a & b",
        r"a \& b",
        "x\\",
        r"\text{a & b}",
        "x_",
        r"\left( x",
        r"\frac{a",
        r"\frac{a}",
        "",
    ],
)
def test_what_would_be_shown_as_source_is_refused(latex):
    with pytest.raises(FormulaError):
        mathml(latex)


def test_markup_in_a_formula_is_text():
    text = str(mathml(r"a < b \text{<script>x</script>}"))
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    Read(text)


def test_markdown():
    """Paragraphs, emphasis, code and lists; links and HTML are text."""
    text = markdown("*One* `a < b`\n\n- <b>two</b>\n- [three](http://x)")
    assert text == (
        "<p><em>One</em> <code>a &lt; b</code></p>\n<ul>\n<li>&lt;b&gt;two&lt;/b&gt;</li>\n"
        "<li>[three](http://x)</li>\n</ul>\n"
    )


def test_formulas_in_markdown():
    text = markdown(r"The mean \(\bar{r}_i * b_i\) of *all*, `\(x\)`, \(open")
    assert text.count("<math") == 1
    assert '<math display="inline">' in text
    assert "<em>all</em>" in text
    assert r"<code>\(x\)</code>" in text
    assert text.endswith("(open</p>\n")


def test_a_wrong_formula_in_markdown_is_refused():
    with pytest.raises(FormulaError, match="nosuch"):
        markdown(r"as \(\nosuch\)")
