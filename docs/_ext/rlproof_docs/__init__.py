"""What docs/conf.py needs: generated pages, executed commands, formulas as MathML.

The generators (`faults`, `recipes`, `claims`, `cli`, `metrics`) are plain functions that return
Markdown by path; they import nothing of sphinx, so that tests run them without it.
"""
