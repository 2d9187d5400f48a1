"""The statistics of every comparison."""

import math
import statistics

# Student's t at 97.5 %, by degrees of freedom from 1.
T = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228]


def median_interval(values):
    """Median and its 95 % interval by order statistics."""
    values, n = sorted(values), len(values)
    rank = max(0, math.floor((n - 1.96 * math.sqrt(n)) / 2))
    return statistics.median(values), values[rank], values[n - 1 - rank]


def mean_gain(gains):
    """Geometric mean and its 95 % interval (Student's t on the logarithms)."""
    logs = [math.log(gain) for gain in gains]
    mean, half = statistics.fmean(logs), 0.0
    if len(logs) > 1:
        half = T[min(len(logs) - 1, len(T)) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def spread(values, show):
    """Median, minimum and maximum as text."""
    return f"{show(statistics.median(values))} ({show(min(values))}-{show(max(values))})"


def ratios(values, reference):
    """Ratios of two lists, round by round."""
    return [a / b if b else math.nan for a, b in zip(values, reference)]
