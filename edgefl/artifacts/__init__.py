"""Exported graphs and bundles: read them, cut a graph for a mask, bake weights in, store files by digest.

Graphs need the onnx package but not torch, so a coordinator and a small device can do all of this.

bundle.py          everything that was exported of a model
bundle_zip.py      reads zip files of strangers
program_check.py   refuses compiled programs that do not belong to a bundle, or are not called as they must be
graph_check.py     refuses graphs that could do more than compute
onnx_session.py    opens a graph in onnxruntime, checked and confined
artifact_store.py  content-addressed files, and atomic writes
submodel.py        what one device gets: weights, training graph, inference model
widen.py           a bundle of a wider model, without an export
cut.py             cuts a training graph to the gradients of the trained layers
features.py        cuts an inference graph to what the last layer reads
bake.py            puts a submodel's weights into an inference graph
side_by_side.py    several networks of one model as one inference graph
fold.py            computes the constants of an inference graph in advance
absorb.py          merges batch norms and biases into the layers before them
quantise.py        converts an inference model to 8-bit integers
"""
