# SPDX-License-Identifier: Apache-2.0
"""Element types."""

import numpy as _np

from undertow._core import (  # noqa: F401
    bfloat16,
    bool_,
    dtype_of,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

half, single, double = float16, float32, float64
byte, short, long = int8, int16, int64
int_, uint, float_ = int64, uint64, float64
number_type = (int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, bfloat16)
int_type = (int8, int16, int32, int64)
uint_type = (uint8, uint16, uint32, uint64)
float_type = (float16, float32, float64, bfloat16)


def dtype_to_nptype(type_):
    """NumPy's type for one of ours. bfloat16 needs the ml_dtypes package. Raises TypeError for anything else."""
    name = dtype_of(type_).name
    if name == "bfloat16":
        from ml_dtypes import bfloat16 as found

        return found
    return _np.dtype(name).type


def dtype_to_pytype(type_):
    """Python's type for one of ours."""
    name = dtype_of(type_).name
    return bool if name == "bool" else float if "float" in name else int


def pytype_to_dtype(obj):
    """Our dtype for a Python or NumPy type. Raises TypeError without one."""
    return dtype_of(obj)
