"""The environment variables by which numerical libraries are told how many threads to start."""

from __future__ import annotations

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS")
#: an environment in which they start none beside the program's own
ONE = dict.fromkeys(VARIABLES, "1")
