"""JAX: training of a network of two small layers, a jitted step of some dozen kernels at a time, and one operation that
is dispatched by itself.
"""

import os

from turns import main, need

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
jax = need("jax")
numpy = jax.numpy


def loss(weights, inputs, wanted):
    hidden = numpy.tanh(inputs @ weights[0])
    return numpy.mean((hidden @ weights[1] - wanted) ** 2)


@jax.jit
def update(weights, inputs, wanted):
    gradients = jax.grad(loss)(weights, inputs, wanted)
    return [weight - 0.01 * gradient for weight, gradient in zip(weights, gradients)]


keys = jax.random.split(jax.random.PRNGKey(1), 4)
weights = [jax.random.normal(keys[0], (256, 512)) * 0.05, jax.random.normal(keys[1], (512, 16)) * 0.05]
inputs, wanted = jax.random.normal(keys[2], (64, 256)), jax.random.normal(keys[3], (64, 16))
total = numpy.zeros(())


def step():
    global weights, total
    weights = update(weights, inputs, wanted)
    total = total + weights[1][0, 0]


main(step, lambda: total.block_until_ready())
