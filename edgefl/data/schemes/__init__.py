"""Ways to divide samples among clients: labels in, the client of every sample out.

apportionment.py  dividing whole numbers in proportion, and drawing samples
iid_and_owner.py  IID, and by owner
dirichlet.py      Dirichlet proportions
few_labels.py     K labels per client
two_class.py      two classes per client at a given rate
"""
