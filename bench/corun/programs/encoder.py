"""LS: an encoder of BERT-base's shape, fp16, captured as a CUDA graph, 4 texts of 128 tokens a
request."""

from harness import Program, captured, need

PERIOD_S = 1 / 40
WARM_UPS = 20


def main():
    program = Program(period_s=PERIOD_S)
    torch = program.torch
    transformers = need("transformers")
    width, layers, heads, length = program.size((768, 12, 12, 128), (32, 2, 2, 8))
    shape = transformers.BertConfig(
        hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=4 * width
    )
    model = transformers.BertModel(shape).to(program.device, torch.float16 if program.gpu else torch.float32).eval()
    tokens = torch.randint(1000, 30000, (4, length), device=program.device)

    with torch.inference_mode(), program.stream():
        replay = captured(program, lambda: model(tokens).pooler_output.float().sum())

        def request():
            replay().item()

        for _ in range(program.size(WARM_UPS, 2)):
            request()
        program.serve_requests(request)


if __name__ == "__main__":
    main()
