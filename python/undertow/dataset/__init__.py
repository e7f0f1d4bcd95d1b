# SPDX-License-Identifier: Apache-2.0
"""Datasets: sources, and operations on them that give new datasets."""

from undertow.dataset import config, transforms, vision  # noqa: F401
from undertow.dataset.datasets import Dataset, Shuffle, _wrap, concat, zip  # noqa: F401
from undertow.dataset.samplers import (  # noqa: F401
    DistributedSampler,
    IterSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)
from undertow.dataset.sources import (  # noqa: F401
    FashionMnistDataset,
    GeneratorDataset,
    MnistDataset,
    NumpySlicesDataset,
)
