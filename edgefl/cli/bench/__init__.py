"""`edgefl bench`: run benchmarks on this machine.

parser.py       the parser of `edgefl bench`
options.py      options shared by the subcommands
output.py       tables, JSON, charts and progress
bar_chart.py    bar chart of a report
infer.py        `edgefl bench infer`
train.py        `edgefl bench train`
wire.py         `edgefl bench wire`
plan.py         `edgefl bench plan`
coordinator.py  `edgefl bench coordinator`
"""
