"""The model zoo: the networks of the five papers, in plain torch, and the door for the user's own.

spec.py         what is said of a model, and the rule that names its blocks
catalog.py      the models by name; building one
seeding.py      initial weights that depend on a seed alone
user_models.py  package.module:factory
cnn.py          CNN4, CNN8                       FedMRN
lenet.py        LeNet5 (Caffe's)                 FedSpa
vgg.py          VGG11, VGG16                     FedSpa, Hermes
resnet.py       ResNet18, PreResNet18            FedSpa, PerFedMask
mobilenet.py    MobileNet v1                     PerFedMask
mlp.py          perceptron for UCI HAR           Hermes
digits.py       two small networks for digits    none
char_lstm.py    character LSTM for Shakespeare   FedMAP

Models know nothing of masks, graphs or ONNX. All of them can be traced by `torch.export`: no control flow that depends
on data, no operation in place.
"""

from export.zoo.catalog import ZOO, blocks_of, build
from export.zoo.spec import HEAD, Factory, ModelSpec, block_of
from export.zoo.user_models import load_factory

__all__ = ["ZOO", "ModelSpec", "Factory", "build", "load_factory", "HEAD", "block_of", "blocks_of"]
