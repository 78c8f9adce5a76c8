"""Readers of published file formats; each describes the data sets it can read as `Source` values.

idx.py          MNIST, Fashion-MNIST and EMNIST letters
cifar.py        CIFAR-10 and CIFAR-100
digits.py       scikit-learn's digits
har.py          UCI HAR
leaf.py         LEAF's JSON files
alphabet.py     LEAF's 80 characters
plays.py        plain texts of plays
shakespeare.py  next-character prediction on Shakespeare
npz.py          your own data
every_fifth.py  a fixed test set for data published without one
"""
