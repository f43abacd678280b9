"""Fail on errors, and on checks that did not run."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    report = json.load(file)
bad = [
    f"{entry['path']}:{finding['line']}: {finding['code']} {finding['name']}"
    for entry in report["files"]
    for finding in entry["findings"]
    if finding["severity"] == "error"
]
bad += [
    f"{entry['path']}: not checked: {skip['check']} ({skip['reason']})"
    for entry in report["files"]
    for skip in entry["skipped"]
]
print(*bad, sep="\n")
sys.exit(1 if bad else 0)
