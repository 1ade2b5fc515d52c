# compat: transformers: a tiny model with weights of a seed generates tokens, greedily, with a cache
# modules: torch transformers
import torch
from transformers import LlamaConfig, LlamaForCausalLM


def main():
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    config = LlamaConfig(
        vocab_size=512,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=128,
        initializer_range=0.2,
        bos_token_id=1,
        eos_token_id=None,
        pad_token_id=0,
    )
    model = LlamaForCausalLM(config).eval().cuda()
    prompt = torch.tensor([[11, 7, 301, 5, 404, 90, 2, 99]], device="cuda")
    with torch.inference_mode():
        said = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=24, do_sample=False)
    print(*said[0].tolist())


if __name__ == "__main__":
    main()
