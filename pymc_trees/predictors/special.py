"""The error function and its complements of arrays, to the last few bits; numpy has none.

Rational approximations of Cody (1969), in three ranges of ``|x|``, as in the SPECFUN library.

References
----------
Cody, W. J. (1969). Rational Chebyshev approximations for the error function. Mathematics of
Computation 23(107), 631-637.
"""

import numpy as np

_ROOT_PI = 0.56418958354775628695
"""``pi**-0.5``."""
_NEAR, _MIDDLE = 0.46875, 4.0

_A = (3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3)
_A_LAST = 1.85777706184603153e-1
_B = (2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_C = (
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
_C_LAST = 2.15311535474403846e-8
_D = (
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)
_P = (
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
_P_LAST = 1.63153871373020978e-2
_Q = (
    2.56852019228982242e0,
    1.87295284992346725e0,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)


def _ratio(x, last, above, below):
    """Ratio of two polynomials of one degree; the leading coefficient of the second is 1."""
    top, bottom = last * x, x
    for a, b in zip(above[:-1], below[:-1], strict=True):
        top, bottom = (top + a) * x, (bottom + b) * x
    return (top + above[-1]) / (bottom + below[-1])


def _tail(y):
    """``exp(y**2) erfc(y)`` for ``y`` above `_NEAR`."""
    middle = np.minimum(y, _MIDDLE)
    far = np.maximum(y, _MIDDLE)
    square = 1.0 / (far * far)
    beyond = (_ROOT_PI - square * _ratio(square, _P_LAST, _P, _Q)) / far
    return np.where(y <= _MIDDLE, _ratio(middle, _C_LAST, _C, _D), beyond)


def _gauss(y):
    """``exp(-y**2)``, y in two parts so that its square loses no digits."""
    first = np.trunc(y * 16.0) / 16.0
    return np.exp(-first * first) * np.exp(-(y - first) * (y + first))


def erf(x: np.ndarray) -> np.ndarray:
    """Error function."""
    x = np.float64(1.0) * x  # duck arrays stay themselves
    y = np.abs(x)
    near = np.minimum(y, _NEAR)
    inside = x * _ratio(near * near, _A_LAST, _A, _B)
    far = np.clip(y, _NEAR, 30.0)
    outside = np.copysign(1.0 - _gauss(far) * _tail(far), x)
    return np.where(np.isnan(x), x, np.where(y <= _NEAR, inside, outside))


def erfc(x: np.ndarray) -> np.ndarray:
    """``1 - erf(x)``."""
    x = np.float64(1.0) * x
    y = np.abs(x)
    far = np.clip(y, _NEAR, 30.0)
    tail = _gauss(far) * _tail(far)
    outside = np.where(x < 0, 2.0 - tail, tail)
    inside = 1.0 - erf(np.clip(x, -_NEAR, _NEAR))
    return np.where(np.isnan(x), x, np.where(y > _NEAR, outside, inside))


def erfcx(x: np.ndarray) -> np.ndarray:
    """``exp(x**2) erfc(x)``."""
    x = np.float64(1.0) * x
    y = np.abs(x)
    far = np.maximum(y, _NEAR)
    tail = _tail(far)
    with np.errstate(over="ignore"):
        below = 2.0 * np.exp(y * y) - tail
    near = np.clip(x, -_NEAR, _NEAR)
    inside = np.exp(near * near) * (1.0 - erf(near))
    result = np.where(y <= _NEAR, inside, np.where(x < 0, below, tail))
    return np.where(np.isnan(x), x, result)


def normal_cdf(z: np.ndarray) -> np.ndarray:
    """Probability of a standard Normal below z."""
    return 0.5 * erfc(-z / np.sqrt(2.0))


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Inverse logit, without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def softmax(x: np.ndarray, axes) -> np.ndarray:
    """Shares of exp(x) along axes."""
    powers = np.exp(x - x.max(axis=axes, keepdims=True))
    return powers / powers.sum(axis=axes, keepdims=True)
