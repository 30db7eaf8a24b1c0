"""Train a network to read handwritten digits: the program a JAX user would write, on minijax.

    python examples/mnist_classifier.py                    # on the digits that come with the book
    python examples/mnist_classifier.py --mnist FOLDER     # on MNIST's own four files
    python examples/mnist_classifier.py --jax              # the same under JAX, if it is installed
"""

import argparse
import sys
import time

import numpy as np

from minijax.book.datasets import load_digits, load_mnist, split

if "--jax" in sys.argv:
    import jax
    import jax.numpy as jnp
else:
    import minijax as jax
    import minijax.numpy as jnp

RATE, FRICTION = 0.05, 0.9


# --- The network ----------------------------------------------------------------------------------

def initial_params(rng, sizes):
    """A layer is {"w": (n_in, n_out), "b": (n_out,)}; outputs vary about as much as inputs."""
    return [{"w": rng.normal(0, np.sqrt(2 / n_in), (n_in, n_out)).astype(np.float32),
             "b": np.zeros(n_out, np.float32)}
            for n_in, n_out in zip(sizes, sizes[1:])]


def logits(params, image):
    x = image.reshape(-1)
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def example_loss(params, image, label):
    return -jax.nn.log_softmax(logits(params, image))[label]


def loss(params, images, labels):
    return jnp.mean(jax.vmap(example_loss, in_axes=(None, 0, 0))(params, images, labels))


# --- Training -------------------------------------------------------------------------------------

@jax.jit
def step(params, velocity, images, labels):
    value, gradient = jax.value_and_grad(loss)(params, images, labels)
    velocity = jax.tree.map(lambda v, g: FRICTION * v - RATE * g, velocity, gradient)
    return jax.tree.map(jnp.add, params, velocity), velocity, value


@jax.jit
def accuracy(params, images, labels):
    best = jnp.argmax(jax.vmap(logits, in_axes=(None, 0))(params, images), axis=-1)
    return jnp.mean(best == labels)


def batches(rng, n, size):
    """The examples' numbers in a random order, cut into batches; the few left over wait."""
    return rng.permutation(n)[:n // size * size].reshape(-1, size)


def train_epoch(rng, params, velocity, examples, batch_size, label):
    """One walk through the examples: new parameters and velocity, and the mean loss."""
    values = []
    for rows in progress(batches(rng, len(examples.labels), batch_size), label):
        params, velocity, value = step(params, velocity, examples.images[rows],
                                       examples.labels[rows])
        values.append(value)
    return params, velocity, np.mean([float(v) for v in values])


# --- The program ----------------------------------------------------------------------------------

def progress(items, label, width=30):
    """Go through `items` and draw a bar on a terminal's stderr, ten times a second at most."""
    drawn = 0.0
    for done, item in enumerate(items, 1):
        yield item
        if sys.stderr.isatty() and (time.monotonic() - drawn > 0.1 or done == len(items)):
            drawn, full = time.monotonic(), width * done // len(items)
            sys.stderr.write(f"\r{label} [{'█' * full}{'·' * (width - full)}] {done}/{len(items)}")
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")


def options(argv=None):
    parser = argparse.ArgumentParser(description="Train a network to read handwritten digits.")
    parser.add_argument("--mnist", metavar="FOLDER", help="a folder with MNIST's four idx files, "
                        "packed or not (default: the digits that come with the book)")
    parser.add_argument("--epochs", type=positive, default=20)
    parser.add_argument("--hidden", type=positive, nargs="*", default=[64], metavar="UNITS",
                        help="the widths of the hidden layers (default: 64)")
    parser.add_argument("--batch-size", type=positive, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jax", action="store_true", help="run under JAX instead of minijax")
    return parser.parse_args(argv)


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def load(folder):
    try:
        return load_mnist(folder) if folder else split(load_digits())
    except (FileNotFoundError, ValueError) as error:
        sys.exit(str(error))


def main():
    args = options()
    train, held_out = load(args.mnist)
    if len(train.labels) < args.batch_size:
        sys.exit(f"a batch of {args.batch_size} is more than the {len(train.labels)} examples")
    rng = np.random.default_rng(args.seed)
    params = initial_params(rng, [train.images[0].size, *args.hidden, 10])
    velocity = jax.tree.map(np.zeros_like, params)
    start = time.monotonic()
    for epoch in range(1, args.epochs + 1):
        params, velocity, mean_loss = train_epoch(rng, params, velocity, train, args.batch_size,
                                                  f"epoch {epoch:2}")
        score = float(accuracy(params, *held_out))
        print(f"epoch {epoch:2}  loss {mean_loss:.4f}  held-out accuracy {score:.4f}  "
              f"{time.monotonic() - start:5.1f} s", flush=True)


if __name__ == "__main__":
    main()
