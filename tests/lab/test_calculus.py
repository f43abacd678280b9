"""Comparisons and differences on functions whose derivatives are known."""

import numpy as np
import pytest

from rlproof.lab.calculus import compare, curl, jacobian


def test_comparison_of_a_known_pair():
    """x = (2, 2), y = (2, 0): error 1, cosine 1/√2, 45°, scale 1, no ratio where y is 0."""
    found = compare([2, 2], [2, 0])
    assert found.relative_error == pytest.approx(1)
    assert found.cosine == pytest.approx(0.5**0.5)
    assert found.degrees == pytest.approx(45)
    assert found.scale == pytest.approx(1)
    np.testing.assert_equal(found.ratios, [1, np.nan])


def test_zeros_have_no_direction():
    with pytest.raises(ValueError, match="no direction"):
        compare([0, 0], [1, 0])


def test_jacobian_of_a_quadratic():
    """f = (x², x·y): rows (2x, 0) and (y, x)."""
    found = jacobian(lambda x: [x[0] ** 2, x[0] * x[1]], [3.0, 5.0])
    np.testing.assert_allclose(found, [[6, 0], [5, 3]], atol=1e-8)


def test_curl_tells_a_rotation_from_a_gradient():
    """(−y, x) turns, with nothing symmetric in its Jacobian; (2x, 0)ᵀ-like fields do not."""
    assert curl(np.array([[1.0, 2.0], [2.0, -3.0]])) == 0
    assert curl(np.array([[1.0, -1.0], [1.0, 1.0]])) == pytest.approx(1)
