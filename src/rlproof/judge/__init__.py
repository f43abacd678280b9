"""From observations to findings: identification, then one detector per fault."""
