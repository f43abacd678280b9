"""Two rewards that a program can check; completions are lists of messages here."""


def digits(completions, **_):
    """The share of the answer's characters that are digits."""
    texts = [said[0]["content"] for said in completions]
    return [sum(map(str.isdecimal, text)) / max(len(text), 1) for text in texts]


def right(completions, answer, **_):
    """1 for the sum and nothing else, 0 otherwise."""
    texts = [said[0]["content"] for said in completions]
    return [float(text == wanted) for text, wanted in zip(texts, answer)]
