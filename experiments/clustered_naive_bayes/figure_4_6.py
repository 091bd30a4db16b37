"""Bell numbers against powers of two, and how long the sum over all partitions takes.

The thesis's figure says why the evidence of Clustered Naive Bayes cannot be summed partition by
partition. Drawn beside it: the products of the recursion over subsets that sums them all the same.
"""

from __future__ import annotations

import math
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import bayes_lcs as bl
from bayes_lcs.core.partitions import log_crp
from experiments.benchmarks.tables import Table
from experiments.clustered_naive_bayes.setting import NUM_GROUPS, Setting
from experiments.papers.outcome import Finding, Outcome

MOST_OBJECTS = 25


def bell_numbers(most: int) -> list[int]:
    """The number of partitions of 0 to ``most`` objects, by the Bell triangle.

    >>> bell_numbers(5)
    [1, 1, 2, 5, 15, 52]
    """
    numbers, row = [1], [1]
    for _ in range(most):
        numbers.append(row[-1])
        following = [row[-1]]
        for entry in row:
            following.append(following[-1] + entry)
        row = following
    return numbers


def recursion_products(objects: int) -> int:
    """Products behind the sum over all partitions.

    ``Z(S)`` takes one product for each block that holds the first member of ``S``, and is needed
    for the whole set and for the subsets without the first object.
    """
    return (3 ** (objects - 1) - 1) // 2 + 2 ** (objects - 1)


def run(setting: Setting) -> Outcome:
    bell = bell_numbers(MOST_OBJECTS)
    objects = list(range(1, MOST_OBJECTS + 1))
    products = [recursion_products(n) for n in objects]
    numbers = pd.DataFrame(
        {
            "objects": objects,
            "partitions": bell[1:],
            "subsets": [2**n for n in objects],
            "products": products,
        }
    )
    thesis = bell[NUM_GROUPS]
    singletons = log_crp(range(NUM_GROUPS), 1.0)
    part = setting.data.select_groups(range(min(setting.data.num_groups, NUM_GROUPS)))
    start = time.perf_counter()
    bl.exact(bl.ClusteredNaiveBayes(), part, progress=False)
    seconds = time.perf_counter() - start
    findings = {
        "partitions_of_21_users": Finding(f"{thesis:,}", round(thesis / 1e12) == 475),
        "log_uniform_probability_of_a_partition": Finding(
            f"{-math.log(thesis):.2f}", round(-math.log(thesis), 1) == -33.8
        ),
        "log_prior_of_any_partition_above": Finding(f"{singletons:.2f}", singletons > -43),
        "no_hope_of_the_exact_evidence": Finding(
            f"{part.num_groups} groups summed in {seconds:.1f} seconds", False
        ),
    }
    shown = (5, 10, 15, NUM_GROUPS, MOST_OBJECTS)
    rows = [(n, f"{bell[n]:,}", f"{2**n:,}", f"{recursion_products(n):,}") for n in shown]
    columns = ("objects", "partitions", "subsets", "products of the recursion")
    table = Table("figure_4_6", "How many partitions there are", columns, rows)
    return Outcome([table], numbers, {"": _draw(numbers)}, findings)


def _draw(numbers: pd.DataFrame) -> Figure:
    figure, axes = plt.subplots(figsize=(6.2, 4.2), layout="constrained")
    at = numbers["objects"]
    lines = {
        "partitions (Bell numbers)": ("partitions", "-"),
        "products of the recursion over subsets": ("products", "-."),
        "powers of 2": ("subsets", "--"),
    }
    for label, (column, style) in lines.items():
        axes.plot(at, numbers[column].astype(np.float64), style, label=label)
    axes.axvline(NUM_GROUPS, color="0.7", linewidth=1)
    axes.annotate(
        "21 users", (NUM_GROUPS, 2), xytext=(-4, 0), textcoords="offset points", ha="right"
    )
    axes.set_yscale("log")
    axes.set_xlabel("objects")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return figure
