"""The command line: one module per command, and `main.py`, which collects them.

A command's module imports only the standard library and `edgefl.errors` at the top, everything else inside its
functions, so that `edgefl --help` is instant on a bare install. Data goes to stdout, logs and progress to stderr.

main.py                   the entry point, exit codes and stream failures
arguments.py              argument values that several commands parse
tables.py                 tables and JSON on stdout
optional_dependencies.py  errors for missing optional packages
data.py                   `edgefl data`
export.py                 `edgefl export`
export_federation.py      `edgefl export --federation`
export_programs.py        `edgefl export --programs`
export_report.py          the summary of `edgefl export`
compile.py                `edgefl compile`
compile_worker.py         takes what a coordinator wants, holds the leases, delivers
compile_process.py        the processes in which programs are compiled
inspect.py                `edgefl inspect`
inspect_bundle.py         of a bundle, and of what it says about samples
conformance.py            `edgefl conformance`
profile.py                `edgefl profile`
plan.py                   `edgefl plan`
plan_picture.py           heatmap of a plan
simulate.py               `edgefl simulate`
simulate_progress.py      progress and summary of `edgefl simulate`
report.py                 `edgefl report`
compare.py                `edgefl compare`
serve.py                  `edgefl serve`
backup.py                 `edgefl backup`
certificate.py            `edgefl certificate`
fed/                      `edgefl fed`
join.py                   `edgefl join`
join_engine.py            which engine `edgefl join` uses, and its profile
join_home.py              which home `edgefl join` and `edgefl predict` mean
join_pairing.py           which coordinator `edgefl join` means, and whom to trust there
join_worker.py            the process in which `edgefl join` trains
predict.py                `edgefl predict`
bench/                    `edgefl bench`
completion.py             `edgefl completion`
"""
