"""The suite's kernel for each of the papers' benchmarks, by the paper's name, and how it is made as long.

A launch does its blocks again and again, in a deeper grid, until it lasts so long alone (`gpuslice-bench run
--calibrate-us`); of several launches each does. Those that cannot be done again (one block that adds up in place) stay
as they are. `md5Hash` and `histogram` add to what is there, so their first number is scaled instead.
"""

FLEP = {  # Table 1
    "CFD": "cfd",
    "NN": "nearestNeighbor",
    "PF": "pathFinder",
    "PL": "particleFilter",
    "MD": "md",
    "SPMV": "spmv",
    "MM": "matrixMul",
    "VA": "vectorAdd",
}
FRS = {  # Table I
    "CEDD": "canny",
    "SPMV": "spmv",
    "VA": "vectorAdd",
    "CONV": "convolution",
    "BS": "blackScholes",
    "PF": "pathFinder",
    "MM": "matrixMul",
    "HST256": "histogram",
    "RED": "reduction",
}
EFFISHA = {  # Table 3
    "BFS": "bfs",
    "FFT": "fft",
    "MD": "md",
    "MD5Hash": "md5Hash",
    "NeuralNet": "neuralNet",
    "Reduction": "reduction",
    "Scan": "scan",
    "Sort": "sort",
    "Spmv": "spmv",
    "Stencil2D": "stencil2D",
    "Triad": "triad",
}
SMGUARD = {  # Table 3
    "nn": "nearestNeighbor",
    "pf": "pathFinder",
    "va": "vectorAdd",
    "bfs": "bfs",
    "pl": "particleFilter",
    "mc": "myocyte",
    "md": "md",
    "mm": "matrixMul",
    "bs": "blackScholes",
    "md5": "md5Hash",
}
# Extents that take less than the papers' shortest, with more data than the caches hold where memory is the limit; and
# those for the software GPU.
EXTENTS = {
    "bfs": ((2_000_003,), (2_001,)),
    "blackScholes": ((8_000_007,), (5_007,)),
    "canny": ((4_001, 3_003), (51, 35)),
    "cfd": ((500_009,), (503,)),
    "convolution": ((6_001, 6_003), (70, 37)),
    "fft": ((50_000,), (8,)),
    "histogram": ((64_000_003,), (10_003,)),
    "matrixMul": ((1024, 1100, 1000), (52, 70, 45)),
    "md": ((300_007,), (503,)),
    "md5Hash": ((64_000_011,), (24_011,)),
    "myocyte": ((3072, 10_000), (97, 20)),
    "nearestNeighbor": ((16_000_031,), (10_031,)),
    "neuralNet": ((4_096, 784, 512), (17, 41, 41)),
    "particleFilter": ((8_000, 1), (300, 1)),
    "pathFinder": ((1_000_003, 101), (1_011, 21)),
    "reduction": ((64_000_101,), (20_101,)),
    "scan": ((16_000_003,), (10_003,)),
    "sort": ((4_000_003,), (503,)),
    "spmv": ((200_001, 100), (301, 20)),
    "stencil2D": ((4_001, 4_003, 2), (67, 35, 1)),
    "triad": ((16_000_011,), (10_021,)),
    "vectorAdd": ((16_000_011,), (10_011,)),
}
BY_EXTENT = {"histogram", "md5Hash"}
UNCHECKED = {"md5Hash", "myocyte"}  # the CPU takes minutes for their result
MOST_EXTENT = 4_000_000_000  # that gpuslice-bench takes
# Entries of kernels that are several launches; the others are called like their only one.
ENTRIES = {
    "bfs": ("bfsStart", "bfsLevel"),
    "canny": ("cannySmooth", "cannyGradient", "cannyThin", "cannyFollow"),
    "cfd": ("cfdStepFactor", "cfdFlux", "cfdAdvance"),
    "convolution": ("convolutionRows", "convolutionColumns"),
    "neuralNet": ("neuralLayer",),
    "particleFilter": ("particleMove", "particleSum", "particleDraw"),
    "scan": ("scanReduce", "scanTop", "scanBottom"),
    "sort": ("sortCount", "sortStarts", "sortMove"),
}


def entries(kernel):
    """The kernels that a launch of the suite's kernel launches."""
    return ENTRIES.get(kernel, (kernel,))
