# SPDX-License-Identifier: Apache-2.0
"""Datasets: sources, and operations on them that give new datasets."""

from undertow.dataset import config, text, transforms, vision  # noqa: F401
from undertow.dataset.callback import DSCallback, WaitedDSCallback  # noqa: F401
from undertow.dataset.datasets import BatchInfo, Dataset, Shuffle, _wrap, concat, zip  # noqa: F401
from undertow.dataset.files import (  # noqa: F401
    CSVDataset,
    ImageFolderDataset,
    MindDataset,
    TextFileDataset,
    TFRecordDataset,
)
from undertow.dataset.samplers import (  # noqa: F401
    DistributedSampler,
    IterSampler,
    PKSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)
from undertow.dataset.schema import Schema  # noqa: F401
from undertow.dataset.sources import (  # noqa: F401
    Cifar10Dataset,
    Cifar100Dataset,
    DatasetCache,
    FashionMnistDataset,
    GeneratorDataset,
    MnistDataset,
    NumpySlicesDataset,
    PaddedDataset,
)
