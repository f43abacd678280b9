"""Gradients of divergences on TREE by recursion over its prefixes, without sequences or scores."""

import numpy as np

ROWS = {(): 0} | {(a,): 1 + a for a in range(3)}
ROWS |= {(a, b): 4 + 3 * a + b for a in range(3) for b in range(3)}


def gradients(task):
    """Of KL(π‖ref), of the token sums of k2 and k3, and the first minus the second: (39,) each.

    Row x adds reach(x)·π_x·(w − Σ π_x·w), where w is log(π_x/ref_x), the divergence of what
    follows, or both; and reach(x)·(π_x − ref_x) for k3.
    """
    p, q = np.exp(task.policy.log_table), np.exp(task.held_to.log_table)
    whole, k2, k3, rest = (np.zeros((13, 3)) for _ in range(4))

    def below(prefix, reach):
        if len(prefix) == 3:
            return 0.0
        row = ROWS[prefix]
        own, gap = p[row], np.log(p[row] / q[row])
        after = np.array([below((*prefix, v), reach * own[v]) for v in range(3)])
        for table, worth in ((whole, gap + after), (k2, gap), (rest, after)):
            table[row] = reach * own * (worth - own @ worth)
        k3[row] = reach * (own - q[row])
        return own @ (gap + after)

    below((), 1.0)
    return [table.ravel() for table in (whole, k2, k3, rest)]
