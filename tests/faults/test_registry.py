import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlproof.faults.registry import catalogue, find, matching


def test_codes_match_files_and_names_read_well_after_allow():
    for code, fault in catalogue().items():
        assert code == fault.code
        assert fault.name == fault.name.lower()
        assert " " not in fault.name
        assert fault.plant or fault.detect
        assert set(fault.views) <= set("CSRMD")


def test_names_are_unique():
    names = [fault.name for fault in catalogue().values()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("spelling", ["SUR004", "sur004", "optimistic-clip", "Optimistic-Clip "])
def test_codes_and_names_are_accepted_everywhere(spelling):
    assert find(spelling).code == "SUR004"
    assert matching(spelling) == {"SUR004"}


def test_a_prefix_selects_a_family():
    assert matching("KLD") == {code for code in catalogue() if code.startswith("KLD")}


def test_an_unknown_name_suggests_a_near_one():
    with pytest.raises(KeyError, match="optimistic-clip"):
        find("optimistik-clip")


@given(st.text(max_size=12))
def test_any_text_is_found_or_refused_with_a_message(text):
    known = {*catalogue(), *(fault.name for fault in catalogue().values())}
    wanted = text.strip()
    if wanted and any(name.startswith((wanted.upper(), wanted.lower())) for name in catalogue()):
        assert matching(text) <= set(catalogue())
    elif wanted.lower() not in known:
        with pytest.raises(KeyError, match="no fault is called"):
            matching(text)
