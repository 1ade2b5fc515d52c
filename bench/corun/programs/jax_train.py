"""Batch: trains a transformer of 4 layers in JAX, 32 x 128 tokens a step, bf16 products; one compiled step."""

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

from harness import JaxProgram, need  # noqa: E402 (JAX reads the variable when it is imported)

WARM_UPS = 5


def main():
    program = JaxProgram()
    jax = program.jax
    np, optax = jax.numpy, need("optax")
    width, heads, layers, words, rows, length = program.size((512, 8, 4, 8192, 32, 128), (32, 2, 1, 64, 2, 8))
    keys = iter(jax.random.split(jax.random.key(1), 8 * layers + 8))

    def matrix(inside, outside):
        return jax.random.normal(next(keys), (inside, outside)) / inside**0.5

    weights = {
        "words": matrix(words, width),
        "layers": [
            {
                "project": matrix(width, 3 * width),
                "back": matrix(width, width),
                "widen": matrix(width, 4 * width),
                "narrow": matrix(4 * width, width),
            }
            for _ in range(layers)
        ],
    }

    def norm(x):
        return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def scores(weights, tokens):
        x = weights["words"][tokens].astype(np.bfloat16)
        for layer in weights["layers"]:
            layer = jax.tree.map(lambda part: part.astype(np.bfloat16), layer)
            parts = (norm(x) @ layer["project"]).reshape(*tokens.shape, 3, heads, width // heads)
            seen = jax.nn.dot_product_attention(parts[:, :, 0], parts[:, :, 1], parts[:, :, 2], is_causal=True)
            x = x + seen.reshape(x.shape) @ layer["back"]
            x = x + jax.nn.gelu(norm(x) @ layer["widen"]) @ layer["narrow"]
        return norm(x) @ weights["words"].T.astype(np.bfloat16)

    def loss(weights, tokens):
        said = scores(weights, tokens[:, :-1]).astype(np.float32)
        return optax.softmax_cross_entropy_with_integer_labels(said, tokens[:, 1:]).mean()

    optimizer = optax.adamw(1e-4)

    @jax.jit
    def train(weights, state, tokens):
        value, slopes = jax.value_and_grad(loss)(weights, tokens)
        changes, state = optimizer.update(slopes, state, weights)
        return optax.apply_updates(weights, changes), state, value

    now = [weights, optimizer.init(weights)]
    tokens = jax.random.randint(next(keys), (rows, length + 1), 0, words)

    def step():
        now[0], now[1], value = train(*now, tokens)
        return value

    for _ in range(program.size(WARM_UPS, 1)):
        jax.block_until_ready(step())
    program.run_steps(step)


if __name__ == "__main__":
    main()
