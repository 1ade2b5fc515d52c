"""LS: a speech model of Whisper-base's shape, fp16, eager: 30 s of sound are encoded, then 4 tokens are decoded, each
read by the CPU before the next one.
"""

from harness import Program, need

TOKENS = 4
PERIOD_S = 1 / 15
WARM_UPS = 10


def main():
    program = Program(period_s=PERIOD_S)
    torch = program.torch
    transformers = need("transformers")
    width, layers, heads = program.size((512, 6, 8), (32, 1, 2))
    shape = transformers.WhisperConfig(
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
    )
    kind = torch.float16 if program.gpu else torch.float32
    model = transformers.WhisperForConditionalGeneration(shape).to(program.device, kind).eval()
    sound = torch.randn(1, shape.num_mel_bins, 2 * shape.max_source_positions, device=program.device, dtype=kind)
    first = torch.tensor([[shape.decoder_start_token_id]], device=program.device)

    def request():
        heard = model.model.encoder(sound)
        token, past = first, None
        for _ in range(TOKENS):
            said = model(encoder_outputs=heard, decoder_input_ids=token, past_key_values=past, use_cache=True)
            token, past = said.logits[:, -1:].argmax(-1), said.past_key_values
            token.item()

    with torch.inference_mode(), program.stream():
        for _ in range(program.size(WARM_UPS, 1)):
            request()
        program.serve_requests(request)


if __name__ == "__main__":
    main()
