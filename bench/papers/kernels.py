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
