"""The exporter: turns a torch model into graphs that devices can train and run.

It is the only package that imports torch. It may import `edgefl`, but never `coordinator` or `device_runtime`, and only
the command line may import it.

model_source.py           the model to export: one of the zoo, or the user's own
zoo/                      the models of the papers, in plain torch
bundle.py                 exports a model to a bundle
training_graph.py         one ONNX graph that trains every submodel
inference_graph.py        the ONNX graph for prediction
trace_model.py            traces a model, operation by operation
trace.py                  the state of a trace: values, gradients, layers
ops/                      the ATen operations, each with its forward and backward form in ONNX
axes.py                   tensor axes as products of factors, and the channels that belong together
constants.py              constant tensors that a model creates itself
losses.py                 the losses of a training graph
emitter.py                writes ONNX graphs, byte for byte reproducible
describe_graph.py         the `ModelGraph` of a traced model
personal_files.py         the files of one submodel, in every format
executorch/               training and inference programs for ExecuTorch
engines.py                the engines that are compared with PyTorch
parity.py                 checks that an engine computes what PyTorch computes
kink_avoidance.py         keeps a batch away from points without a derivative
shared_dropout_noise.py   lets PyTorch drop the same entries as an exported graph
sgd_trajectory.py         steps of SGD that every engine can follow
quantisation_accuracy.py  the accuracy of 8-bit models
benchmark_steps.py        what `edgefl bench` needs torch for
"""
