"""`make fuzz`: one process attacks, one is attacked; only errors with a name of ours may come out (docs/fuzzing.md).

case.py       a case, how it ended, and its file in tests/corpus
mutate.py     random changes of trees, text and bytes; shrink.py makes a failing case smaller
ground.py     the small federation that is attacked, and a folder of good files for each reader
frames.py, hellos.py, strangers.py, files.py, records.py      the targets: make a case, run it
attacked.py   the process that is attacked; campaign.py the one that attacks, counts and keeps what failed
"""
