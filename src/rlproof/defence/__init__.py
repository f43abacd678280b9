"""The defence: which claim each line of a trainer rests on, shown on its own functions."""
