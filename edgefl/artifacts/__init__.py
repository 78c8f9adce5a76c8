"""Exported graphs and bundles: read them, cut a graph for a freezing mask, bake weights in, keep results by digest.

Graphs need the onnx package, never torch, so a coordinator and a small device can do all of this.

    cut.py        keep the gradients that are wanted
    bake.py       weights into an inference graph; fold.py and absorb.py: what can be computed before it runs
    quantise.py   an inference model on 8-bit integers
    submodel.py   what one device gets
    bundle.py     everything that was exported of a model
    store.py      content-addressed files
"""
