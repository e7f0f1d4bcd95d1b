# SPDX-License-Identifier: Apache-2.0
"""MindRecord files: written, read and made from other formats. To train from them: dataset.MindDataset."""

from undertow._core import Error, FileError
from undertow.mindrecord.converters import (  # noqa: F401
    Cifar10ToMR,
    Cifar100ToMR,
    CsvToMR,
    ImageNetToMR,
    MnistToMR,
    TFRecordToMR,
)
from undertow.mindrecord.files import FileReader, FileWriter, MindPage  # noqa: F401

SUCCESS, FAILED = "SUCCESS", "FAILED"


def set_enc_key(enc_key):
    """Encryption is not supported; None, no key, is what there is."""
    if enc_key is not None:
        raise NotImplementedError("mindrecord: encryption is not supported")


def set_enc_mode(enc_mode="AES-GCM"):
    """Without a key there is nothing to set."""


def set_dec_mode(dec_mode="AES-GCM"):
    """Without a key there is nothing to set."""


# MindSpore's exceptions, for `except` clauses: what stands for them here.
ParamTypeError = TypeError
ParamValueError = ParamMissError = MRMInvalidSchemaError = MRMAddSchemaError = MRMBuildSchemaError = ValueError
MRMDefineIndexError = MRMAddIndexError = MRMInvalidPageSizeError = MRMInvalidHeaderSizeError = ValueError
MRMValidateDataError = MRMDefineCategoryError = MRMUnsupportedSchemaError = ValueError
MRMOpenError = MRMOpenForAppendError = PathNotExistsError = FileError
MRMWriteDatasetError = MRMSetHeaderError = MRMCommitError = MRMGenerateIndexError = MRMFetchDataError = Error
