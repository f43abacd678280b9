"""The catalogue of faults: `<code>.py` recognises one, `<code>.md` explains it."""
