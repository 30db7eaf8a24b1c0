"""Find the polynomials of minijax/compiler/vector_math.py: those with the smallest largest error.

    python tools/minimax.py [NAME …]        print the tables, and how good they are

It needs mpmath, which nothing else here does: `pip install mpmath`. A polynomial p stands for f in
some formula, in which an error of p of the size w(x) is as large as the result; what is made small
is the largest |p(x) - f(x)| / w(x) on an interval.
"""

import argparse

import mpmath as mp
from mpmath import mpf

mp.mp.dps = 50
TINY = mpf("1e-12")


# --- Remez's algorithm ----------------------------------------------------------------------------

def remez(f, w, low, high, count, rounds=12):
    """(coefficients, error) of the best polynomial with `count` coefficients."""
    low, high = mpf(low), mpf(high)
    grid = chebyshev_points(low, high, 24 * count)
    points = chebyshev_points(low, high, count)
    best = None
    for _ in range(rounds):
        coefficients, level = levelled(f, w, points, count)
        errors = [(mp.polyval(coefficients[::-1], x) - f(x)) / w(x) for x in grid]
        worst = max(map(abs, errors))
        if best is None or worst < best[1]:
            best = coefficients, worst
        points = extrema(grid, errors, count + 1)
        if len(points) <= count or worst <= abs(level) * mpf("1.02"):
            break
    return best


def chebyshev_points(low, high, intervals):
    return [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * k / intervals)
            for k in range(intervals + 1)]


def levelled(f, w, points, count):
    """The polynomial whose weighted errors at count + 1 points are ± one level, and the level."""
    rows = [[x ** j for j in range(count)] + [(-1) ** i * w(x)] for i, x in enumerate(points)]
    solution = list(mp.lu_solve(mp.matrix(rows), mp.matrix([f(x) for x in points])))
    return solution[:count], solution[count]


def extrema(grid, errors, count):
    """Where the error is largest between changes of its sign; at most `count` neighbours."""
    runs = []
    for x, e in zip(grid, errors):
        if not runs or (runs[-1][1] > 0) != (e > 0):
            runs.append((x, e))
        elif abs(e) > abs(runs[-1][1]):
            runs[-1] = x, e
    while len(runs) > count:
        runs.pop(0 if abs(runs[0][1]) < abs(runs[-1][1]) else -1)
    return [x for x, _ in runs]


# --- What the polynomials stand for ---------------------------------------------------------------

def odd(function, first=1):
    """(f, w) of p in function(x) = first x + x³ p(x²)."""
    def f(z):
        x = mp.sqrt(max(z, mpf("1e-16")))
        return (function(x) / x - first) / x ** 2

    def w(z):
        x = mp.sqrt(z + TINY)
        return function(x) / x ** 3
    return f, w


def relative(f):
    """(f, w) where the error is to be small against f itself."""
    return f, f


def log_tail(z):
    s = mp.sqrt(max(z, TINY))
    return (2 * mp.atanh(s) - 2 * s - 2 * s ** 3 / 3) / s ** 5


def cosine(z):
    z = max(z, mpf("1e-14"))
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z ** 2


def erf_near(z):
    x = mp.sqrt(max(z, mpf("1e-20")))
    return mp.erf(x) / x - 1


def place_of(x):
    return (mpf(x) - 3) / (mpf(x) + 3)


def scaled_erfc(t):
    x = 3 * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def inverse_erf(w):
    """erf⁻¹(x) / x for x with log(1 - x²) = -w."""
    if w < TINY:
        return mp.sqrt(mp.pi) / 2
    x, y = mp.sqrt(-mp.expm1(-w)), mp.sqrt(w) * mpf("0.9")
    rest = mp.log(-mp.expm1(mp.log1p(-mp.exp(-w)) / 2))          # log(1 - x)
    for _ in range(60):
        tail = mp.erfc(y)
        step = (mp.log(tail) - rest) * tail * mp.exp(y * y) * mp.sqrt(mp.pi) / 2
        y += step
        if abs(step) < mpf("1e-40"):
            break
    return y / x


LOG_INTERVAL = 0, mpf("1.001") * (3 - mp.sqrt(8)) ** 2
HALF_LOG2 = mpf("1.001") * mp.log(2) / 2
QUARTER = mpf("1.001") * (mp.pi / 4) ** 2

EXP = (lambda r: mpf(1) / 2 + r / 6 if abs(r) < 1e-10 else (mp.expm1(r) - r) / r ** 2,
       lambda r: 1 / TINY if abs(r) < TINY else abs(mp.expm1(r)) / r ** 2)
COS = cosine, lambda z: mp.cos(mp.sqrt(z)) / (z + TINY) ** 2
ERF = erf_near, lambda z: erf_near(z) + 1
ERF_FAR = (lambda x: -mp.log(mp.erfc(x)) / x, lambda x: mp.erf(x) / mp.erfc(x) / x)
LOG_TAIL = log_tail, lambda z: 2 * mp.atanh(mp.sqrt(z + TINY)) / mp.sqrt(z + TINY) ** 5

# name: one line for each table: ((f, w), interval, number of coefficients)
TABLES = {
    "EXP": [(EXP, (-HALF_LOG2, HALF_LOG2), n) for n in (5, 11)],
    "TANH": [(odd(mp.tanh), (0, mpf("0.625") ** 2), n) for n in (5, 12)],
    "SINH": [(odd(mp.sinh), (0, 1), n) for n in (4, 7)],
    "LOG": [(odd(lambda s: 2 * mp.atanh(s), 2), LOG_INTERVAL, n) for n in (3, 7)],
    "LOG_TAIL": [(LOG_TAIL, LOG_INTERVAL, 7)],
    "CBRT": [(relative(lambda x: x ** (-mpf(1) / 3)),
              (mp.sqrt(0.5) * mpf("0.999"), mp.sqrt(2) * mpf("1.001")), 4)],
    "SIN": [(odd(mp.sin), (0, QUARTER), n) for n in (4, 6)],
    "COS": [(COS, (0, QUARTER), n) for n in (3, 6)],
    "ASIN": [(odd(mp.asin), (0, mpf("0.2501")), n) for n in (6, 13)],
    "ATAN": [(odd(mp.atan), (0, mp.tan(mp.pi / 8) ** 2 * mpf("1.001")), n) for n in (5, 11)],
    "ERF": [(ERF, (0, mpf("0.85") ** 2), n) for n in (6, 11)],
    "ERF_FAR": [(ERF_FAR, (mpf("0.84"), high), n) for high, n in ((mpf("4.1"), 6), (6, 18))],
    "ERFC": [(relative(scaled_erfc), (place_of("0.49"), place_of(high)), n)
             for high, n in (("10.3", 10), (28, 22))],
    "ERF_INV": [(relative(lambda v: inverse_erf(v + mpf("3.125"))),
                 (-mpf("3.125"), mpf("3.125")), 11)],
    "ERF_INV_TAIL": [(relative(lambda v: inverse_erf((v + mpf("4.25")) ** 2)),
                      (mpf("-1.75"), mpf("1.81")), 13)],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help=", ".join(TABLES))
    for name in parser.parse_args().names or TABLES:
        for (f, w), (low, high), count in TABLES[name]:
            coefficients, error = remez(f, w, low, high, count)
            print(f"{name}: 2^{float(mp.log(error, 2)):.1f}", flush=True)
            print("   ", ", ".join(repr(float(c)) for c in coefficients), flush=True)


if __name__ == "__main__":
    main()
