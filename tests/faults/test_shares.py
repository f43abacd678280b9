"""MET001 on small clip fractions."""

import pytest
from tests.support.checking import check_text, strong

SHARE = '''import math


def clip_fraction(new_logps, old_logps, mask, clip_eps=0.2):
    """Share of real tokens whose ratio is outside the clip range."""
    flags = [
        abs(math.exp(new - old) - 1) > clip_eps
        for new_row, old_row, row in zip(new_logps, old_logps, mask)
        for new, old, real in zip(new_row, old_row, row)
        if real
    ]
    return {sign}sum(flags) / max(len(flags), 1)
'''


@pytest.mark.parametrize(("sign", "codes"), [("", []), ("-", ["MET001"])])
def test_a_share_is_not_negative(tmp_path, sign, codes):
    assert strong(check_text(tmp_path, SHARE.format(sign=sign))) == codes
