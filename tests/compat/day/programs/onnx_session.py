# compat: ONNX Runtime: a session of the CUDA provider
# modules: onnx onnxruntime numpy
import sys

import numpy
import onnxruntime
from onnx import TensorProto, helper
from printed import check


def main():
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        print("ONNX Runtime has no CUDA provider", file=sys.stderr)
        sys.exit(77)
    shape = [128, 128]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("a", "b", "c")]
    nodes = [helper.make_node("MatMul", ["a", "b"], ["p"]), helper.make_node("Relu", ["p"], ["c"])]
    graph = helper.make_graph(nodes, "product", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CUDAExecutionProvider"])
    if session.get_providers()[0] != "CUDAExecutionProvider":
        sys.exit("the CUDA provider was not taken")
    left, right = (numpy.random.default_rng(seed).integers(-4, 4, shape).astype(numpy.float32) for seed in (1, 2))
    for _ in range(20):
        found = session.run(None, {"a": left, "b": right})[0]
    check("product", found, numpy.maximum(left @ right, 0))


if __name__ == "__main__":
    main()
