"""The claims of the defence: one file per claim, `<id>_<name>.py`, found by the registry."""
