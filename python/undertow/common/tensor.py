# SPDX-License-Identifier: Apache-2.0
"""Tensor, under its older address."""

from undertow._core import Tensor  # noqa: F401
