"""Small example programs. They use the public packages only.

demo.py             eight unequal devices train one model on handwritten digits
sparse_submodel.py  submodels of five unequal devices, and their updates
own_strategy.py     a strategy of your own
outside_model.py    a model that is not in the zoo
networks.py         networks of the papers, described by hand
coordinator/        a federation on handwritten digits
"""
