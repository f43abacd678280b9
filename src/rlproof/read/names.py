"""What a parameter's name says about its part in the objective."""

from __future__ import annotations

import re
from enum import StrEnum
from itertools import pairwise


class Slot(StrEnum):
    """The part that one parameter of a function plays."""

    NEW = "new log-probs"
    OLD = "old log-probs"
    REF = "reference log-probs"
    ADVANTAGES = "advantages"
    REWARDS = "rewards"
    MASK = "mask"
    LENGTHS = "lengths"
    CLIP = "clip range"
    CLIP_LOW = "lower clip range"
    CLIP_HIGH = "upper clip range"
    CAP = "dual-clip cap"
    BETA = "divergence coefficient"
    GROUP_SIZE = "group size"
    GROUP_IDS = "group of each row"
    GROUPS = "number of groups"
    RECORDS = "records that hold rewards"
    EPS = "stabiliser"
    WIDTH = "constant normaliser"
    THETA = "policy parameters"
    LOGITS = "logits"
    ROWS = "prompt of each row"
    TOKENS = "tokens"
    PROMPTS = "prompts"
    TEMPERATURE = "temperature"
    FUNCTION = "function of the parameters"
    STEP = "finite-difference step"
    RATIO = "ratio of the policies"
    LOG_RATIO = "log of the ratio of the policies"
    WEIGHTS = "weights that are 1 without effect"
    DIVERGENCES = "divergence of each token"
    REWARD_FUNCTION = "reward function"
    RESPONSES = "responses"
    TRUTHS = "expected answers"
    SWITCH = "switch"
    ONE = "number that is 1 without effect"
    EOS = "end-of-sequence id"
    PAD = "padding id"
    MODEL = "language model"
    PROMPT_TOKENS = "tokens of the prompt"
    COMPLETION_TOKENS = "tokens of the completion"
    LABELS = "labels"
    ATTENTION = "attention mask"
    PROMPT_MASK = "mask of the prompt"
    COMPLETION_MASK = "mask of the completion"
    POSITIONS = "positions"
    KEEP = "number of completion tokens"
    START = "number of prompt tokens"
    CHUNK = "rows at a time"
    DEVICE = "device"
    TOKENIZER = "tokenizer"
    TENSORS = "tensors by name"
    DISCOUNT = "discount"
    TRUNCATED = "rows cut off"
    UNSEEN = "setting that is not known"


_LOGP = {
    "logp", "logps", "logprob", "logprobs", "lp", "lps", "logpi", "logpis", "ll", "lprobs",
    "nll", "nlls", "loglik", "loglikelihood", "loglikelihoods",
}  # fmt: skip
_NO_LOGP = {"loss", "losses", "weight", "coef", "coeff", "coefficient", "threshold"}
_OLD = {
    "old", "behave", "behavior", "behaviour", "rollout", "sampler", "sampling", "sampled", "mu",
    "prev", "previous", "before", "gen", "generation", "stale", "proximal", "prox", "inference",
}  # fmt: skip
_REF = {"ref", "reference", "base", "sft", "init", "initial", "frozen", "anchor"}
_NEW = {"new", "cur", "curr", "current", "policy", "pi", "theta", "actor", "now"}
_ADVANTAGE = {"adv", "advs", "advantage", "advantages", "A"}
_REWARD = {"reward", "rewards", "score", "scores", "returns", "rew", "rews", "r"}
_KL = {"kl", "kld", "divergence"}
_COEFFICIENT = {
    "coef", "coeff", "coefficient", "weight", "beta", "lambda", "penalty", "scale", "tau",
}  # fmt: skip
_SWITCHING = {"norm", "normalize", "normalise", "normalized", "whiten", "use", "center"}
_VERBS = {"normalize", "normalise", "standardize", "whiten", "center", "scale", "use"}
_OTHER_CLIPS = {"grad", "gradient", "value", "vf", "vloss", "reward", "adam", "optimizer", "layer"}
_CORRECTIONS = {"rho", "is", "importance", "tis", "loss", "token", "correction", "sample"}
_WHOLE: dict[Slot, set[str]] = {
    Slot.GROUP_SIZE: {
        "group_size", "groupsize", "num_generations", "n_generations", "num_samples", "n_samples",
        "samples_per_prompt", "rollouts_per_prompt", "rollout_n", "num_rollouts", "group", "G",
        "k", "n", "g", "n_per_prompt", "num_return_sequences", "completions_per_prompt",
        "num_pre_q", "num_rollouts_per_prompt", "num_completions", "n_rollouts", "num_responses",
        "num_answers_per_question", "generations_per_sample", "num_generations_per_prompt",
        "num_samples_per_prompt", "n_samples_per_prompt", "rollouts_per_question",
        "num_responses_per_prompt", "num_responses_per_question", "group_sz", "grpo_size",
    },
    Slot.GROUP_IDS: {
        "group_ids", "groups", "group_id", "prompt_ids", "uids", "uid", "index", "group_index",
        "prompt_index",
    },
    Slot.EPS: {
        "eps", "epsilon", "stability", "stab", "tiny", "delta", "min_std", "std_eps",
        "advantage_eps", "adv_eps", "norm_eps", "eps_std",
    },
    Slot.LENGTHS: {
        "lengths", "lens", "seq_lens", "completion_lengths", "response_lengths", "rollout_lens",
        "rollout_lengths", "completion_lens", "response_lens", "gen_lens", "generation_lengths",
        "output_lens", "output_lengths", "answer_lengths", "action_lengths",
    },
    Slot.WIDTH: {
        "max_len", "max_length", "max_tokens", "max_completion_length", "normalizer", "normaliser",
        "norm", "max_new_tokens", "budget", "max_response_length", "generation_budget",
        "generate_max_length", "max_gen_len", "max_gen_length", "max_generation_length",
    },
    Slot.THETA: {"theta", "params", "weights", "table", "policy", "th", "logit_table", "model"},
    Slot.LOGITS: {"logits", "scores"},
    Slot.ROWS: {"rows", "prompt_of_row", "prompt_rows", "row_prompts", "states", "prompt_idx"},
    Slot.TOKENS: {
        "tokens", "token_ids", "ids", "labels", "actions", "completions", "input_ids", "targets",
        "sequences", "completion_ids", "response_ids", "response_id",
    },
    Slot.PROMPTS: {"prompts", "questions", "queries", "tasks", "contexts"},
    Slot.TEMPERATURE: {"temperature", "temp", "tau"},
    Slot.FUNCTION: {"f", "fn", "func", "function", "loss_fn", "objective"},
    Slot.DIVERGENCES: {
        "kl_divergences", "kl_divergence", "kl_div", "kls", "per_token_kl", "token_kl",
    },
    Slot.REWARD_FUNCTION: {"reward_fn", "reward_func", "reward_function", "score_fn", "scorer"},
    Slot.RESPONSES: {"rollout_responses", "responses", "completions", "outputs", "answers"},
    Slot.TRUTHS: {
        "repeated_ground_truths", "ground_truths", "gold", "references", "solutions", "targets",
    },
    Slot.SWITCH: {
        "normalize_by_std", "normalise_by_std", "use_std", "scale_rewards", "norm_by_std",
        "normalize", "normalise", "normalize_std", "std_normalization", "use_std_normalization",
    },
    Slot.ONE: {"gradient_accumulation_steps", "grad_accum_steps", "accumulation_steps"},
    Slot.EOS: {"eos", "eos_id", "eos_token", "eos_token_id", "stop_id", "stop_token", "end_id"},
    Slot.PAD: {"pad", "pad_id", "pad_token", "pad_token_id"},
    Slot.STEP: {"h", "step", "delta", "eps", "epsilon", "dx"},
}  # fmt: skip
_FRACTION_WORDS = {"frac", "fraction", "ratio", "rate", "share", "clipfrac"}


def words(name: str) -> list[str]:
    """`newLogProbs_2` to `["new", "log", "probs", "2"]`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [word.lower() for word in spaced.split("_") if word]


def is_logp(name: str) -> bool:
    """Whether the name speaks of log-probabilities (or their negatives)."""
    parts = words(name)
    if parts and parts[-1] in _NO_LOGP:
        return False
    joined = {a + b for a, b in pairwise(parts)}
    glued = {"newlogp", "oldlogp", "reflogp"} | {
        f"{q}{w}" for q in ("new", "old", "ref") for w in _LOGP
    }
    return bool((set(parts) | joined) & (_LOGP | glued | {"logproba"}))


def is_negative_logp(name: str) -> bool:
    """Whether the name speaks of *negative* log-probabilities."""
    parts = set(words(name))
    return bool(parts & {"nll", "nlls"}) or (is_logp(name) and bool(parts & {"neg", "negative"}))


def objective_slot(name: str) -> Slot | None:
    """The slot of a parameter of a loss, a clip-fraction metric or reward shaping."""
    parts = set(words(name))
    if is_logp(name):
        glued = "".join(words(name))
        if parts & _OLD or glued.startswith("old"):
            return Slot.OLD
        return Slot.REF if parts & _REF or glued.startswith("ref") else Slot.NEW
    if parts & _ADVANTAGE and parts & {"eps", "epsilon"}:  # the stabiliser of their scale
        return Slot.EPS
    if parts & _ADVANTAGE and parts & {"tau", "coef", "coeff", "multiplier"}:
        return Slot.ONE
    if parts & _ADVANTAGE and parts & {"clip", "clamp", "max", "min"}:  # a bound of their size
        return None
    if name in _ADVANTAGE or parts & (_ADVANTAGE - {"A"}):
        return Slot.SWITCH if parts & _SWITCHING else Slot.ADVANTAGES
    if parts & {"mask", "masks"} and parts & {"high", "low", "threshold", "delta"}:
        return _side(parts) if parts & {"high", "low"} else None  # where to mask from
    if "threshold" in parts and parts & {"ipo", "tv", "dppo", "trust", "ratio"}:
        return _side(parts)
    if parts & {"mask", "masks"} or name in {"valid", "m", "is_real", "real"}:
        return Slot.MASK
    counted = parts & {"num", "n", "count", "global", "total"}
    if "valid" in parts and parts & {"samples", "rows", "sequences"} and not counted:
        return Slot.WEIGHTS
    if "weights" in parts and parts & _CORRECTIONS:
        return Slot.WEIGHTS
    known = (Slot.LENGTHS, Slot.WIDTH, Slot.GROUP_SIZE, Slot.GROUP_IDS, Slot.TEMPERATURE)
    if slot := _whole(name, Slot.DIVERGENCES, Slot.SWITCH, Slot.ONE):
        return slot
    if slot := _coefficient_slot(name, parts) or _whole(name, *known):
        return slot
    return Slot.REWARDS if parts & (_REWARD - {"r"}) and not parts & {"in", "use"} else None


_DIFFERENCE = {"ratio", "ratios", "diff", "difference", "delta", "gap"}


def ratio_slot(name: str) -> Slot | None:
    """The slot of a parameter that holds π_new / π_old, or its logarithm up to its sign."""
    parts = words(name)
    known = set(parts)
    if known & {"ref", "reference", "clip", "clipped", "max", "min", "low", "high", "rollout"}:
        return None
    if known & {"kl"} and known & {"ppo", "approx"} and not known & _COEFFICIENT:
        return Slot.LOG_RATIO
    if "logratio" in known or (parts[-1:] and parts[-1] in _DIFFERENCE and "log" in known):
        return Slot.LOG_RATIO
    if is_logp(name) and known & _DIFFERENCE:
        return Slot.LOG_RATIO
    plain = known <= {"ratio", "ratios", "importance", "is", "prob", "probs", "policy", "token"}
    return Slot.RATIO if plain and known & {"ratio", "ratios"} else None


def says_new(name: str) -> bool:
    """Whether a name of log-probs says that they are those of the current policy."""
    return bool(set(words(name)) & _NEW) or name.lower().startswith(("new", "cur"))


def says_advantages(name: str) -> bool:
    """Whether a name speaks of advantages."""
    return bool(set(words(name)) & {w.lower() for w in _ADVANTAGE if len(w) > 1})


def bare_slot(name: str) -> Slot | None:
    """Short names that only say which policy: `new`, `old`, `ref`."""
    for slot, known in ((Slot.NEW, _NEW), (Slot.OLD, _OLD), (Slot.REF, _REF)):
        if name.lower() in known:
            return slot
    return None


def _coefficient_slot(name: str, parts: set[str]) -> Slot | None:
    if name.lower() in {"beta", "kl"} or (parts & _KL and parts & _COEFFICIENT):
        return Slot.BETA
    if (
        parts & {"dual"}
        or {"clip", "c"} <= parts
        or name in {"clip_ratio_c", "clip_c", "c", "dual_c", "cap"}
    ):
        return Slot.CAP
    if parts & _OTHER_CLIPS:
        return None
    if "delta" in parts and parts & {"high", "low"}:
        return _side(parts)
    clips = parts & {"clip", "cliprange", "eps", "epsilon", "cr"} or "clip" in name.lower()
    if not clips:
        return None
    return _side(parts)


def _side(parts: set[str]) -> Slot:
    """Which bound of the clip range, or both."""
    if parts & {"low", "lower", "lo", "min", "neg", "left"}:
        return Slot.CLIP_LOW
    return Slot.CLIP_HIGH if parts & {"high", "higher", "upper", "hi", "max", "pos"} else Slot.CLIP


def advantage_slot(name: str) -> Slot | None:
    """The slot of a parameter of an advantage function."""
    if slot := _whole(name, Slot.REWARD_FUNCTION, Slot.RESPONSES, Slot.TRUTHS, Slot.SWITCH):
        return slot
    parts = words(name)
    if set(parts) & _REWARD:
        return Slot.SWITCH if parts[0] in _VERBS else Slot.REWARDS
    if set(words(name)) & {"mask", "masks"}:
        return Slot.MASK
    if parts in (["weights"], ["func", "weights"], ["function", "weights"]):
        return Slot.WEIGHTS
    return _whole(name, Slot.GROUP_SIZE, Slot.GROUP_IDS, Slot.EPS, Slot.PROMPTS)


def token_slot(name: str) -> Slot | None:
    """The slot of a parameter of a token log-probability function."""
    if set(words(name)) & {"mask", "masks"}:
        return Slot.MASK
    return _whole(name, Slot.LOGITS, Slot.THETA, Slot.ROWS, Slot.TOKENS, Slot.TEMPERATURE)


def says_clip_fraction(name: str) -> bool:
    """Whether a function's name speaks of the share of tokens that are clipped."""
    parts = set(words(name))
    clips = parts & {"clip", "clipped", "clipfrac"}
    return bool(clips and parts & _FRACTION_WORDS) and "loss" not in parts


def entropy_slot(name: str) -> Slot | None:
    """The slot of a parameter of an entropy: log-probs, the mask or logits."""
    if is_logp(name):
        return Slot.NEW
    return Slot.MASK if set(words(name)) & {"mask", "masks"} else _whole(name, Slot.LOGITS)


def mask_slot(name: str) -> Slot | None:
    """The slot of a parameter of a function that builds a mask from tokens."""
    return _whole(name, Slot.TOKENS, Slot.EOS, Slot.PAD)


def gradient_slot(name: str) -> Slot | None:
    """The slot of a parameter of a numeric gradient."""
    return _whole(name, Slot.FUNCTION, Slot.THETA, Slot.STEP)


def _whole(name: str, *slots: Slot) -> Slot | None:
    lower = "_".join(words(name))
    for slot in slots:
        if name in _WHOLE[slot] or lower in _WHOLE[slot]:
            return slot
    return None
