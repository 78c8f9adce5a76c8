"""The model zoo: the networks of the five papers, in plain torch, and access to the user's own models.

spec.py         what is known of a model, and the rule that names its blocks
catalog.py      the models by name, and how to build one
seeding.py      initial weights that depend only on a seed
user_models.py  the user's own models: package.module:factory
cnn.py          CNN4, CNN8 (FedMRN)
lenet.py        LeNet5 in Caffe's form (FedSpa)
vgg.py          VGG11, VGG16 (FedSpa, Hermes)
resnet.py       ResNet18, PreResNet18 (FedSpa, PerFedMask)
mobilenet.py    MobileNet v1 (PerFedMask)
mlp.py          perceptron for UCI HAR (Hermes)
digits.py       two small networks for digits (no paper)
char_lstm.py    character LSTM for Shakespeare (FedMAP)

Models know nothing of masks, graphs or ONNX. All of them can be traced by `torch.export`: no control flow that depends
on data, no in-place operations.
"""

from export.zoo.catalog import ZOO, blocks_of, build
from export.zoo.spec import HEAD, Factory, ModelSpec, block_of
from export.zoo.user_models import load_factory

__all__ = ["ZOO", "ModelSpec", "Factory", "build", "load_factory", "HEAD", "block_of", "blocks_of"]
