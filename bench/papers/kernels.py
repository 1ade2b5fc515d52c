"""The suite's kernel for each of the papers' benchmarks, by the paper's name."""

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
