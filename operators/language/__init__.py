"""Reading English meeting talk with rules: words, cues, people and dates.

The cues live as data in ``en/*.yaml`` with examples beside them; the modules here only know how
to cut speech into clauses, run cues over them and resolve names and dates.
"""
