"""What a reviewer asks about a GRPO script: question, model answer, the numbers that show it.

Data only. A number is named as its claim names it, and is computed when the answer is shown.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """One question."""

    text: str
    answer: str
    claims: tuple[str, ...]
    """Ids of the claims that the answer rests on; the first ones carry the numbers."""
    numbers: tuple[tuple[str, str], ...]
    """Claim id and name of each number shown with the answer."""


QUESTIONS: tuple[Question, ...] = (
    Question(
        "Why subtract the group's mean from the rewards at all?",
        "The score averages to zero, so anything that does not depend on the action can be taken "
        "off the reward without moving the expected gradient; what falls is the variance. The "
        "group's mean is an estimate of the prompt's value that needs no critic.",
        ("A2", "A1", "E11"),
        (("A2", "largest bias of the five"), ("A2", "total variance, b = 0"),
         ("A2", "total variance, b = V")),
    ),
    Question(
        "The mean contains the completion's own reward. Is the gradient biased?",
        "Its expectation is shorter by the factor (G − 1)/G in every coordinate and points the "
        "same way. Multiplying by G/(G − 1) gives leave-one-out, which is unbiased; a tuned "
        "learning rate hides the difference.",
        ("A3", "A4"),
        (("A3", "E[ĝ]/∇V of each coordinate, P4, G = 4"),
         ("A3", "E[ĝ]/∇V of each coordinate, SEED, G = 8")),
    ),
    Question(
        "What is optimised when the advantage is divided by the group's standard deviation?",
        "For rewards 0 and 1 the direction of each prompt is unchanged and its weight becomes "
        "E[σ̂]/(p(1 − p)); as G grows that is the gradient of 2·arcsin √p. With more reward "
        "values the expected step is the gradient of no function.",
        ("A9", "A11"),
        (("A9", "w_G(p) for p = .001, .01, .1, .3, .5 at G = 8"),
         ("A11", "degrees between E[ĝ] and ∇V, P4, G = 2, 4, 6"),
         ("A11", "|J − Jᵀ|/|J + Jᵀ|, P4, G = 2, 3, 4")),
    ),
    Question(
        "How strongly does that favour prompts that are nearly solved or hopeless, at G = 8?",
        "By a factor of at most √7/1.856 = 1.43: the weight can't exceed √(G − 1). The formula "
        "1/√(p(1 − p)) that is usually quoted is the limit of infinite groups. With two or three "
        "completions a group all prompts weigh the same.",
        ("A10", "A9"),
        (("A10", "√(G−1)/w_G(½) for G = 2, 3, 4, 8, 16"),
         ("A10", "G=∞ formula: weight of p = .001 over p = ½")),
    ),
    Question(
        "Can dividing by the standard deviation prefer the worse of two answers?",
        "Yes, where rewards are random. A sure 1 beats a jackpot with twice its mean at every "
        "small group size, since the groups with the jackpot have the large standard deviation.",
        ("A13",),
        (("A13", "∂V/∂θ_safe"),
         ("A13", "normalised step on θ_safe, G = 2, 4, 8, 16, 32, 64")),
    ),
    Question(
        "What is the eps for, and would a test `std == 0` do as well?",
        "It turns a group of equal rewards into advantages of 0 instead of 0/0. The test does "
        "not: eight rewards of 0.2 have a mean just below 0.2 and a standard deviation of 3e-17, "
        "pass it, and all get A = +1.",
        ("A20",),
        (("A20", "A of eight .2 behind `if std == 0`"), ("A20", "1e11·A with σ̂ + 1e-6")),
    ),
    Question(
        "Population or sample standard deviation?",
        "They differ by √(G/(G − 1)), 6.9 % at G = 8, and by nothing else: same direction, same "
        "ordering. Say which one it is, use it throughout, and mind that the sample one is 0/0 "
        "for a group of one.",
        ("A7", "A21"),
        (("A7", "A with population over A with sample, G = 2, 4, 8, 64"),
         ("A7", "cosine of E[ĝ], said to differ, P4, G = 2, 4, 6")),
    ),
    Question(
        "Does a baseline over the whole batch, instead of the group, bias the gradient?",
        "No more than the group's: the factor is (N − 1)/N. It changes the variance, for better "
        "or worse, and gives groups without signal non-zero advantages. Only a batch-wide "
        "standard deviation mixes the prompts' weights.",
        ("A18", "A19"),
        (("A18", "E[ĝ]/∇V, mean of the batch, said to be biased, G = 2"),
         ("A18", "variance, leave-one-out of group and batch, G = 2")),
    ),
    Question(
        "What happens to a group whose rewards all agree?",
        "Its advantages are 0: no policy gradient. The divergence still acts on it, and its "
        "tokens still count in the denominator. The chance is p^G + (1 − p)^G: 62 % of groups at "
        "p = .98 and G = 8.",
        ("A15",),
        (("A15", "P(signal) at p = .01, G = 2, 8, 64"),
         ("A15", "P(all rewards equal), SEED at π₀ = .98, G = 8")),
    ),
    Question(
        "And if such groups are dropped and drawn again until there is a signal?",
        "The prompt's weight is divided by the chance of a signal, 1 − p^G − (1 − p)^G. For hard "
        "prompts that is about 1/(G·p), which is close to maximising log p.",
        ("A17", "A16"),
        (("A17", "weight of kept groups, p = .001, .01, .1, .5, .9, G = 8"),
         ("A17", "weight of p = .001 over p = .5")),
    ),
    Question(
        "Why is the ratio exp(new − old), and what goes wrong with new/old of log-probs?",
        "π_new/π_old is a difference in logs. On-policy both are 1, so the value tells nothing; "
        "but the quotient of log-probs has the slope 1/log π_old, which is negative: good tokens "
        "get less likely.",
        ("C1",),
        (("C1", "slope of ρ, π_old → π_new = .25 → .25, .25 → .5, .9 → .9, .9 → .95"),
         ("C1", "slope of log π_new/log π_old, π_old → π_new = .25 → .25, .25 → .5, .9 → .9, "
          ".9 → .95"),
         ("C1", "cosine with ∇V of log π_new/log π_old")),
    ),
    Question(
        "Why the minimum of the two surrogates, and not the maximum?",
        "The minimum takes the gradient away only where a token has already gone too far the way "
        "its advantage points, and keeps it where the token must come back. The maximum does the "
        "reverse: at ρ = .5 and A = +1 it has no gradient left to recover with.",
        ("C3", "C4"),
        (("C3", "slopes at ρ = .5, .9, 1, 1.1, 1.5, 5: min, A = +1"),
         ("C3", "slopes at ρ = .5, .9, 1, 1.1, 1.5, 5: max instead, A = +1")),
    ),
    Question(
        "For which signs of A and which ratios is there no gradient?",
        "A > 0 with ρ above 1 + ε, and A < 0 with ρ below 1 − ε; everywhere else the slope is "
        "ρ·A. A dual clip adds A < 0 with ρ above its cap.",
        ("C3", "C10"),
        (("C3", "slopes at ρ = .5, .9, 1, 1.1, 1.5, 5: min, A = −1"),
         ("C10", "its slopes, ρ = .5, 1, 1.5, 2.9, 3.1, 5")),
    ),
    Question(
        "Why a minus before the surrogate and a plus before the divergence?",
        "The loss goes down: what is to grow enters with a minus, what is to stay small with a "
        "plus. Reward curves won't catch a wrong sign of the divergence; they even prefer it, "
        "since nothing holds the policy back.",
        ("B18", "C2"),
        (("B18", "expected reward at β = .4, .04, 0, −.04, −.4"),),
    ),
    Question(
        "At the first step the loss is about 0. Does it learn?",
        "The value is minus the mean advantage, which is 0 by construction; the gradient is minus "
        "the mean of A times the score, which is not. With a token mean and unequal lengths not "
        "even the value need be 0.",
        ("C5", "A22"),
        (("C5", "|E[ĝ]| where the loss is 0, P4, G = 2"),
         ("C5", "first loss, token-mean, rewards (1, 0), lengths (1, 3)")),
    ),
    Question(
        "Why must the old log-probs stay fixed over the epochs of one batch?",
        "They belong to the policy that drew the samples; ratio and clip refer to it. Computed "
        "again before each update, every ratio is 1, the clip is inert, and stale samples are "
        "used as if they were fresh.",
        ("C6",),
        (("C6", "loss, clip fraction, ρ: logit + 1, old frozen"),
         ("C6", "loss, clip fraction, ρ: logit + 1, old refreshed")),
    ),
    Question(
        "With one update per batch, what does the clip do?",
        "Nothing: the only evaluation is at ρ = 1, where all clipped surrogates agree in value "
        "and gradient. A clip fraction of 0 is then right, and a test on-policy can't see a "
        "wrong clip.",
        ("C2", "C6"),
        (("C2", "on-policy relative error of max"),
         ("C2", "off-policy relative error of max, P4")),
    ),
    Question(
        "Does the clip keep the ratio inside its band?",
        "No. The first update is taken at ρ = 1, unclipped, however large it is; and a token "
        "that is clipped still moves with the logits it shares with others. The clip removes an "
        "incentive and constrains nothing.",
        ("C7",),
        (("C7", "ρ after one step of size 1, 4, 8, 16 from uniform"),
         ("C7", "change of its log π per unit of ascent")),
    ),
    Question(
        "Which divergence does k3 estimate, and which one does it descend as a term of the loss?",
        "Sampled from π its mean is KL(π‖ref), without bias and never negative. Its gradient, "
        "sampled from π, is that of KL(ref‖π): for a softmax row π − ref.",
        ("B4", "B1", "B2"),
        (("B1", "E[k1], E[k2], E[k3], P4, ref uniform"), ("B4", "E[∇k3], P4"),
         ("B4", "∇KL(π‖ref), said to be followed, P4"), ("B4", "cosine of the two, P4")),
    ),
    Question(
        "How does one get the gradient of KL(π‖ref) itself?",
        "With k1, held constant, in the reward; or ρ·k3 differentiated through ρ; or, for one "
        "token or a squared log-ratio of the whole row, k2 in the loss.",
        ("B5", "B8", "B11", "B6"),
        (("B5", "E[∇k2], P4"), ("B8", "E[k1·s], P4"),
         ("B11", "∇(ρ·k3), on-policy, π = P4 moved, ref2")),
    ),
    Question(
        "Why has k1 in the loss no effect?",
        "Its gradient is the score, and the score averages to 0: only noise is left. Off-policy "
        "it is worse than useless, for there it pushes away from the policy that sampled.",
        ("B7", "A1"),
        (("B7", "expected reward with k1, β = .04, after 60 steps of the tiny trainer, seed 0"),
         ("B7", "expected reward without a penalty, after 60 steps of the tiny trainer, seed 0"),
         ("B7", "−∇KL(old‖π) there")),
    ),
    Question(
        "Does any unbiased estimator of the divergence do in the reward?",
        "No. In the reward an estimator is multiplied by the score, so only its covariance with "
        "the score matters. k1 is right; k3 and k2 are not, and far from the reference both "
        "push exactly the wrong way.",
        ("B9", "B8"),
        (("B9", "cosines of k1, k2, k3 in the reward with ∇KL(π‖ref), P4"),
         ("B9", "the same, π = (.97, .01, .01, .01)")),
    ),
    Question(
        "The tiny trainer's reward stalls near .98. Is that a bug?",
        "No: there the pull of k3, a gradient of KL(ref‖π), balances the reward. With the "
        "gradient of KL(π‖ref) at the same β it would come to within 1e-10 of 1.",
        ("B14", "B13"),
        (("B14", "p at rest, β = .04 and .1"),
         ("B13", "1 − p of that at β = .04, times 10¹¹")),
    ),
    Question(
        "Does k3 always vary less than k1?",
        "Near the reference much less. On a peaked policy far from it, from a divergence of about "
        ".9 nats on, more: the ratio ref/π has a heavy tail there.",
        ("B3",),
        (("B3", "sd of k1, k2, k3, P4, KL .1412"),
         ("B3", "sd of k1, k2, k3, π = (.997, .001, .001, .001), KL 1.363")),
    ),
    Question(
        "What does the mean of k3 measure when the tokens come from an older policy?",
        "The divergence of neither policy. It takes the factor ρ to estimate KL(π‖ref) again.",
        ("B10",),
        (("B10", "E_old[k1], E_old[k2], E_old[k3], old = P4, ref2"),
         ("B10", "KL(π‖ref), said to be estimated"), ("B10", "E_old[ρ·k1], E_old[ρ·k3]")),
    ),
    Question(
        "Token mean, sequence mean, or a constant divisor?",
        "Where the policy decides when to stop, only the constant keeps the direction of ∇V; the "
        "sequence mean leaves it by far and makes wrong answers longer, as E[score/length] is "
        "not 0. Where the environment draws the length, all three point the same way.",
        ("D1", "D2", "D3", "D4"),
        (("D1", "cosine with ∇V, constant, G = 4"),
         ("D1", "cosine with ∇V, token mean, G = 2, 4, 8"),
         ("D1", "cosine with ∇V, sequence mean"), ("D2", "E[s/L]")),
    ),
    Question(
        "How bad is padding in the denominator, and how bad in the numerator?",
        "In the denominator it is a factor, the share of real tokens: the same direction at a "
        "smaller step. In the numerator it trains whatever stands in the empty slots.",
        ("D5", "D6"),
        (("D5", "E[N/(B·5)] on SEED"), ("D6", "cosine with ∇V, EOS"),
         ("D6", "the same with padding in the numerator")),
    ),
    Question(
        "The pad id is also a real token. Is that a bug?",
        "No: the mask decides what is padding. The test is that loss and gradient stay the same "
        "to the bit when the padding is overwritten or made wider.",
        ("E9", "D6"),
        (("E9", "loss with other padding, minus the loss"),
         ("E9", "loss with three more columns, minus the loss"),
         ("E9", "loss with other padding, minus the loss, mask ignored")),
    ),
    Question(
        "Ratio of the token or of the sequence?",
        "The sequence's is the exact weight, with a variance that grows with length. The token's "
        "is right to first order: it improves the constant of the error, not its order.",
        ("C11", "C12"),
        (("C11", "largest error of sequence ratios, 160 trees"),
         ("C11", "median error, token ratio and none, depth 3, δ = 0.05")),
    ),
    Question(
        "And what is GSPO's ratio, the geometric mean over the row?",
        "No importance weight: its mean is not 1. It varies far less than the product, and "
        "on-policy its gradient is that of the sequence mean.",
        ("C13",),
        (("C13", "mean and variance of ρ_seq, TREE, δ = .5"),
         ("C13", "mean and variance of GSPO's s")),
    ),
    Question(
        "How do you know that the gradient is right?",
        "By comparing it with another one off-policy, with some tokens clipped: on-policy a wrong "
        "clip has an error of exactly 0. Besides, every softmax row of it sums to 0 and absent "
        "prompts get none. Finite differences are good to 1e-11 at h = 1e-4, but average both "
        "slopes across a kink.",
        ("C2", "E9", "E1", "C17"),
        (("C2", "off-policy relative error of no clip, P4"), ("E1", "error at h = 1e-4"),
         ("E9", "row sums of the gradient")),
    ),
    Question(
        "Does GRPO improve pass@k?",
        "On one prompt whatever raises p does. Across prompts it spends its step otherwise: "
        "pass@8 weighs a prompt by 8·(1 − p)^7, which is next to nothing from p = .5 on, where "
        "GRPO still weighs it by 1.86.",
        ("A24", "A9"),
        (("A24", "weight of pass@8 at p = .01, .1, .5, .9"),
         ("A24", "weight of GRPO, said to be the same, G = 8, p = .01, .1, .5, .9")),
    ),
)  # fmt: skip
