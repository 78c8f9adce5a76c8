"""Files that every client must pass, and the scripts that write them. README.md describes the formats.

encoding.py        arrays and payloads as JSON, and back
tiny_model.py      the model of most files: a convolution, a norm and a head, with awkward names
noise_file.py      noise.json, from unbounded integers
pairing_file.py    pairing.json
body_files.py      codecs.json, bad_bodies.json, packed.json
mask_files.py      masks.json
data_files.py      batches.json, schedules.json, normalisation.json
cost_fit_file.py   cost_fit.json
rule_files.py      rules_sgd.json, rules_fine_tune.json, rules_masked_noise.json
forward_files.py   rules_feature_sums.json, rules_head_gradients.json, rules_class_prior.json
score_file.py      channel_scores.json
task_files.py      tasks.json, forward_tasks.json
problem_file.py    problems.json
make.py            writes them all: `python -m tests.golden.make`
"""
