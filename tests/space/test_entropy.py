"""Training on the tokens of largest entropy, by hand and against another quantile."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlproof.space.entropy import Entropy, undecided
from rlproof.space.objective import Batch, Objective, ObjectiveError

SAME = settings(derandomize=True, deadline=None)


def test_by_hand():
    """Of 0, 1, 2, 3, 4 the upper 40 % starts at the quantile 0.6, that is at 2.4."""
    values, mask = np.array([[4.0, 0.0, 3.0], [1.0, 9.0, 2.0]]), np.array([[1, 1, 1], [1, 0, 1]])
    found = undecided(values, mask.astype(float), Entropy(top_share=0.4))
    assert found.tolist() == [[1, 0, 1], [0, 0, 0]]
    given_threshold = undecided(values, mask.astype(float), Entropy(top_share=0.4), 2.0)
    assert given_threshold.tolist() == [[1, 0, 1], [0, 0, 1]]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.booleans()), min_size=1, max_size=30),
    st.integers(0, 20),
)
@SAME
def test_the_threshold_is_numpys_quantile(cells, twentieths):
    values, mask = (np.array([part], dtype=float) for part in zip(*cells, strict=True))
    share = twentieths / 20
    found = undecided(values, mask, Entropy(top_share=share))
    if not mask.any():
        assert not found.any()
        return
    threshold = np.quantile(values[mask > 0], 1 - share)
    near = abs(values - threshold) < 1e-9  # a tie is decided by rounding
    assert ((found > 0) == ((values >= threshold) & (mask > 0)))[~near].all()


def test_what_is_not_taken_still_counts():
    """Two tokens, A = 1, ratio 1, one taken: −1/2 under a token mean. H = 3: −0.1·3/2 more."""
    row = np.zeros((1, 2))
    made = Batch(row, np.ones(1), row + 1, old=row, entropy=np.array([[3.0, 1.0]]))
    how = Objective(entropy=Entropy(0.1, top_share=0.5), aggregation="token-mean")
    assert float(how.loss(made)[0]) == pytest.approx(-0.5 - 0.15)


@pytest.mark.parametrize(
    ("how", "named"),
    [(Entropy(0.1), "entropy.coefficient = 0.1"), (Entropy(top_share=0.5), "entropy.top_share")],
)
def test_missing_entropy(how, named):
    made = Batch(np.zeros((1, 1)), np.ones(1), np.ones((1, 1)))
    with pytest.raises(ObjectiveError, match=f"{named}.* needs batch.entropy"):
        Objective(entropy=how).loss(made)
