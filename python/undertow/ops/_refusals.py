# SPDX-License-Identifier: Apache-2.0
"""Functions of MindSpore that are not here: using one says why."""

from undertow._refused import refuse

_DECOMPOSITION = "matrix decompositions and inverses are not supported"
_FOURIER = "Fourier transforms need complex numbers, which are not supported"
_FORWARD = "forward-mode differentiation is not supported; use ops.grad or ops.vjp"

_REASONS = {
    **dict.fromkeys(
        [
            "cholesky",
            "cholesky_inverse",
            "cholesky_solve",
            "det",
            "eig",
            "eigvals",
            "geqrf",
            "inverse",
            "log_matrix_determinant",
            "logdet",
            "lstsq",
            "lu_solve",
            "lu_unpack",
            "matrix_determinant",
            "matrix_exp",
            "matrix_solve",
            "orgqr",
            "ormqr",
            "pinv",
            "qr",
            "slogdet",
            "svd",
            "Cholesky",
            "CholeskyInverse",
            "LuSolve",
            "MatrixDeterminant",
            "MatrixInverse",
            "MatrixSolve",
            "Qr",
            "Svd",
        ],
        _DECOMPOSITION,
    ),
    **dict.fromkeys(
        [
            "fft",
            "fft2",
            "fftn",
            "ifft",
            "ifft2",
            "ifftn",
            "irfft",
            "irfft2",
            "irfftn",
            "rfft",
            "rfft2",
            "rfftn",
            "stft",
        ],
        _FOURIER,
    ),
    **dict.fromkeys(["derivative", "jacfwd", "jet", "jvp", "linearize"], _FORWARD),
    "jacrev": "use ops.vjp, a row of the Jacobian at a time",
    "vmap": "write the function for a batch, or use ops.scan over the rows",
}
_classes = refuse("ops", _REASONS)
globals().update(_classes)
__all__ = list(_classes)
