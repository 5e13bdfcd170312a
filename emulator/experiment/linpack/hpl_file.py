"""The input file of HPL (HPL.dat) for one problem on one grid."""

from __future__ import annotations


def hpl_file(n: int, block: int, rows: int, columns: int) -> str:
    """The text. Right-looking panels with Crout's recursion, the modified increasing ring, one panel of look-ahead:
    what HPL's own TUNING notes recommend for Ethernet."""
    lines = [
        ("HPL.out", "output file name (if any)"),
        (6, "device out (6 = stdout)"),
        (1, "# of problem sizes (N)"),
        (n, "Ns"),
        (1, "# of NBs"),
        (block, "NBs"),
        (0, "PMAP process mapping (0 = row-major)"),
        (1, "# of process grids (P x Q)"),
        (rows, "Ps"),
        (columns, "Qs"),
        (16.0, "threshold of the residual check"),
        (1, "# of panel factorizations"),
        (2, "PFACTs (2 = right)"),
        (1, "# of recursive stopping criteria"),
        (4, "NBMINs"),
        (1, "# of panels in recursion"),
        (2, "NDIVs"),
        (1, "# of recursive panel factorizations"),
        (1, "RFACTs (1 = Crout)"),
        (1, "# of broadcasts"),
        (1, "BCASTs (1 = modified ring)"),
        (1, "# of look-ahead depths"),
        (1, "DEPTHs"),
        (2, "SWAP (2 = mix)"),
        (64, "swapping threshold"),
        (0, "L1 in (0 = transposed) form"),
        (0, "U in (0 = transposed) form"),
        (1, "equilibration (1 = yes)"),
        (8, "memory alignment in doubles"),
    ]
    head = ["HPL input file", "written by emu"]
    return "\n".join([*head, *(f"{value!s:<12} {meaning}" for value, meaning in lines)]) + "\n"
