"""The report for terminals whose encoding knows no Greek."""

from __future__ import annotations

_WORDS = {
    "π": "pi", "ρ": "rho", "ε": "eps", "β": "beta", "σ": "sigma", "θ": "theta", "∂": "d",
    "Σ": "sum ", "√": "sqrt ", "‖": "||", "−": "-", "·": "*", "×": "x", "≡": "==", "≥": ">=",
    "≤": "<=", "…": "...", "²": "^2", "₀": "0", "½": "1/2", "ₜ": "_t", "ᵢ": "_i", "→": "->",
    "•": "*", "─": "-", "′": "'", "∞": "inf", "ₖ": "_k", "δ": "delta", "η": "eta", "τ": "tau",
    "±": "+/-", "∇": "grad ", "∈": "in", "≈": "~", "’": "'", "—": "-", "–": "-",
}  # fmt: skip


def to_ascii(text: str) -> str:
    """Spell mathematical symbols; anything else unknown becomes `?`."""
    for symbol, word in _WORDS.items():
        text = text.replace(symbol, word)
    return text.encode("ascii", "replace").decode()
