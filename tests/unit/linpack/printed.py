"""What HPL and mpirun print, as they print it."""

from __future__ import annotations

PASSED = """\
================================================================================
HPLinpack 2.0  --  High-Performance Linpack benchmark  --   September 10, 2008
================================================================================
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR11C2R4        2000   128     1     2               0.60              8.842e+00
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0036790 ...... PASSED
================================================================================

Finished      1 tests with the following results:
              1 tests completed and passed residual checks,
"""
FAILED = PASSED.replace("0.0036790 ...... PASSED", "   812.3014 ...... FAILED")
NAN = PASSED.replace("0.0036790 ...... PASSED", "             nan ...... FAILED")
KILLED = """\
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
mpirun noticed that process rank 1 with PID 0 on node pi-2 exited on signal 9 (Killed).
--------------------------------------------------------------------------
"""
NO_MEMORY = """\
HPL ERROR from process # 0, on line 180 of function HPL_pdtest:
>>> [0,0] Memory allocation failed for A, x and b. Skip. <<<
"""
