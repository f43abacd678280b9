"""Which edits can repair which fault, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from rlproof.judge.findings import Finding
from rlproof.read.targets import Script
from rlproof.repair.edits import (
    arguments,
    clipping,
    denominators,
    divergence,
    endings,
    estimators,
    gradient,
    grouping,
    masking,
    metrics,
    micro,
    order,
    pieces,
    ratio,
    reuse,
    rewards,
    scale,
    scoring,
    sides,
    statistics,
    surrogate,
    tokens,
    training,
    updates,
)
from rlproof.repair.edits.model import ConflictError, Edit, compose
from rlproof.repair.edits.site import Site, helpers

Maker = Callable[[Site], Iterator[Edit]]
_MOST = 8  # candidates for one finding
_HELPERS = 6  # functions that the one with the fault calls

MAKERS: dict[str, tuple[Maker, ...]] = {
    "ADV001": (
        statistics.along_rows,
        statistics.as_wide_as_groups,
        statistics.inside_loop,
        grouping.per_group,
    ),
    "ADV002": (statistics.in_a_row, order.in_a_row),
    "ADV003": (statistics.several_members,),
    "ADV004": (scale.with_eps,),
    "ADV005": (scale.guard_by_eps, scale.std_of_groups),
    "ADV006": (scale.larger_eps,),
    "ADV007": (scale.of_whole_group, statistics.with_itself, scale.unscaled),
    "ADV008": (scale.once,),
    "ADV009": (scale.without_nan, pieces.without_missing),
    "ADV011": (scale.assigned_std,),
    "ADV012": (grouping.along_members, pieces.kept_axis),
    "ADV015": (scale.reward_minus_baseline,),
    "ADV017": (scale.one_convention,),
    "ADV018": (pieces.cut_into_groups,),
    "ADV019": (pieces.without_statement, pieces.on_last_token),
    "AGG001": (micro.by_tokens_of_batch,),
    "AGG004": (denominators.by_budget, denominators.by_tokens, denominators.summed_first),
    "AGG005": (denominators.guarded,),
    "AGG006": (denominators.token_mean, denominators.constant),
    "DAT001": (order.with_one_index,),
    "DAT002": (arguments.each_to_its_own, arguments.switched_on),
    "KLD001": (divergence.added,),
    "KLD002": (divergence.turned,),
    "KLD003": (gradient.attached,),
    "KLD004": (divergence.as_k3,),
    "KLD005": (divergence.to_reference,),
    "KLD006": (divergence.turned_metric, divergence.as_k3_metric),
    "KLD007": (divergence.scaled,),
    "KLD008": (masking.guard_first, divergence.masked, pieces.sum_over_mask),
    "KLD009": (estimators.as_k1,),
    "KLD011": (estimators.with_expm1,),
    "LGP001": (scoring.heated, scoring.heated_as_sampled),
    "LGP002": (tokens.scale_logits, scoring.heat_moved),
    "LGP003": (tokens.shifted, scoring.last_logits_dropped, pieces.window_of_each_row),
    "LGP004": (tokens.stable,),
    "LGP005": (tokens.full_precision,),
    "LGP006": (tokens.last_axis,),
    "LGP007": (scoring.with_gradient,),
    "LGP008": (scoring.heat_once,),
    "LGP009": (scoring.log_of_softmax,),
    "LGP010": (scoring.of_the_token,),
    "LOP001": (training.hoisted, reuse.scored_before),
    "LOP002": (training.from_policy,),
    "LOP003": (training.copied,),
    "LOP005": (updates.cleared,),
    "LOP006": (
        training.kept_update,
        updates.given_to_optimizer,
        updates.same_name,
        updates.into_table,
        updates.overridden,
        updates.own_copy,
    ),
    "LOP007": (training.descending,),
    "LOP010": (training.any_prompt, pieces.one_column),
    "LOP011": (updates.rebound, training.on_copy),
    "LOP012": (training.deterministic,),
    "LOP015": (training.two_steps,),
    "MET001": (metrics.masked_fraction, metrics.unclipped, sides.sided),
    "MET002": (metrics.minus,),
    "MET003": (metrics.over_mask,),
    "MET004": (tokens.normalised,),
    "MET005": (pieces.without_statement,),
    "MSK001": (masking.left_out, pieces.mean_over_mask),
    "MSK002": (masking.counted,),
    "MSK003": (masking.same_mask, masking.one_window),
    "MSK004": (endings.up_to_the_end,),
    "MSK005": (tokens.until_end,),
    "MSK008": (masking.filled_first,),
    "MSK009": (scoring.completion_only,),
    "MSK011": (masking.given, arguments.each_to_its_own),
    "MSK014": (pieces.mask_shifted,),
    "MSK013": (scoring.attended, scoring.as_long_as_told),
    "OBJ001": (scale.centred_only,),
    "OBJ002": (gradient.of_bonus, scoring.with_gradient),
    "RWD008": (rewards.last_match,),
    "SMP001": (updates.whole_distribution,),
    "SUR001": (ratio.by_exp,),
    "SUR002": (ratio.by_exp,),
    "SUR003": (ratio.swap_old,),
    "SUR004": (surrogate.smaller,),
    "SUR005": (surrogate.negated,),
    "SUR006": (surrogate.advantage_inside,),
    "SUR007": (clipping.ordered, clipping.own_ranges, clipping.possible),
    "SUR008": (clipping.used, clipping.capped),
    "SUR009": (surrogate.with_unclipped,),
    "SUR010": (ratio.per_token,),
    "SUR011": (denominators.without_repeats, denominators.row_total_per_token),
    "SUR012": (gradient.attached,),
    "SUR013": (surrogate.larger,),
    "SUR014": (surrogate.same_advantages, surrogate.advantages_first),
    "SUR015": (ratio.uncoupled,),
    "SUR016": (ratio.to_old,),
    "SUR017": (ratio.with_axis,),
}


def candidates(script: Script, finding: Finding, codes: frozenset[str]) -> list[Edit]:
    """Edits that may repair a finding, the likeliest first.

    Args:
        script: the script the finding is about.
        finding: one fault at one place.
        codes: every error and warning of the same function; some edits repair two at once.
    """
    site = Site(script, finding, codes)
    if site.function is None:
        return []
    found: dict[tuple[object, ...], Edit] = {}
    makers = MAKERS.get(finding.code, ())
    for place in (site, *map(site.at, islice(helpers(site), _HELPERS))):
        for edit in (edit for maker in makers for edit in maker(place)):
            if not _changes(site.text, edit):
                continue
            covers = (edit.covers & codes) | {finding.code}
            owned = replace(edit, covers=covers, function=finding.place.function)
            found.setdefault(edit.changes, owned)
            if len(found) == _MOST:
                return list(found.values())
    return list(found.values())


def _changes(text: str, edit: Edit) -> bool:
    """Whether it makes a difference, and fits together."""
    try:
        return compose(text, [edit]) != text
    except ConflictError:
        return False
