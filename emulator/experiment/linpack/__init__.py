"""`kind: linpack`: the High-Performance Linpack benchmark (HPL) over MPI on nodes of a lab, held against figures."""
