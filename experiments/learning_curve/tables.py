"""The paper's Tables 1 to 3 from a study, and the claims that such a table can answer."""

from __future__ import annotations

import pandas as pd

from experiments.benchmarks.tables import Table
from experiments.learning_curve.pictures import utilities_figure
from experiments.learning_curve.setting import ALPHAS, Setting
from experiments.learning_curve.study import Study, study
from experiments.papers.outcome import Finding, Outcome
from experiments.papers.runner import NotApplicable

NOT_ABBREVIATED = ("standard LCS", "EM-full")
COLUMNS = ("method", "N_lc", "benefit", "seconds", "utility", "speedup", "overhead", "N_oracle")


def of_rule(table: pd.DataFrame, rule: str = "myopic") -> pd.DataFrame:
    """The rows of one rule, and of EM on all rows."""
    return table[table["rule"].isin([rule, "full"])]


def utilities(table: pd.DataFrame, rule: str = "myopic") -> pd.DataFrame:
    """Utility by method (rows) and α (columns)."""
    return of_rule(table, rule).pivot(index="method", columns="alpha", values="utility")


def tables_of(found: Study) -> list[Table]:
    """One table an α, as printed in the paper."""
    made = []
    for alpha in ALPHAS:
        own = of_rule(found.table).query("alpha == @alpha")
        ours = own["our_alpha"].iloc[0]
        title = f"{found.data_set}, α = {alpha:g} of the paper ({ours:,.0f} benefit per hour here)"
        rows = [tuple(_cell(row[column]) for column in COLUMNS) for _, row in own.iterrows()]
        made.append(Table(f"alpha_{alpha:g}", title, COLUMNS, rows))
    made[-1].notes.append(
        f"{found.num_rows:,} rows to train on; EM on all of them: {found.full.iterations:.0f} "
        f"iterations, {found.full.seconds:.1f} s. Hold-out log-likelihood a row: baseline "
        f"{found.base:.4f}, EM on all rows {found.full.score:.4f}."
    )
    return made


def _cell(value: object) -> object:
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, float) and value == int(value) and abs(value) >= 100:
        return f"{int(value)}"
    if isinstance(value, float):
        return f"{value:.3f}"
    return value


def table_outcome(setting: Setting, data_set: str, claims: tuple[str, ...]) -> Outcome:
    """Run one data set and answer some of the claims below for it."""
    if data_set not in setting.data_sets and setting.name == "paper":
        raise NotApplicable(f"{data_set} is not among {', '.join(setting.data_sets)}")
    chosen = data_set if setting.name == "paper" else setting.data_sets[0]
    found = study(setting, chosen)
    answers = answers_of(found.table)
    return Outcome(
        tables_of(found),
        found.table,
        {"": utilities_figure([found])},
        {f"{claim}_{_slug(data_set)}": answers[claim] for claim in claims},
    )


def _slug(name: str) -> str:
    return name.lower().replace(".", "")


def answers_of(table: pd.DataFrame) -> dict[str, Finding]:
    """Every claim that one data set can answer."""
    by = utilities(table)
    standard, full, best = (
        by.loc["standard LCS"],
        by.loc["EM-full"],
        by.drop(index=list(NOT_ABBREVIATED)),
    )
    wins = int((standard > full).sum())
    beaten = (best > standard).to_numpy()
    first = table.query("method == 'fixed-1' and rule == 'myopic'").set_index("alpha")
    lead = by.loc["fixed-1"] - by.drop(index="fixed-1").max()
    top = int((lead >= 0).sum())
    sizes = (
        of_rule(table)
        .query("rule == 'myopic'")
        .pivot(index="method", columns="alpha", values="N_lc")[list(ALPHAS)]
    )
    rising = bool((sizes.diff(axis=1).iloc[:, 1:] >= 0).all(axis=None))
    low, high = first["overhead"].min(), first["overhead"].max()
    fastest = first.loc[first["speedup"].idxmax()]
    return {
        "standard_beats_full": Finding(f"at {wins} of {len(full)} α", wins == len(full)),
        "abbreviated_beats_standard": Finding(
            f"in {int(beaten.sum())} of {beaten.size} conditions", bool(beaten.mean() > 0.5)
        ),
        "fixed_1_is_best": Finding(
            f"at {top} of {len(lead)} α; behind by {max(0.0, -lead.min()):.4f} at most",
            top == len(lead),
        ),
        "fixed_1_overhead": Finding(f"{low:.2f} to {high:.2f}", bool(high <= 1.65)),
        "speedup": Finding(
            f"{fastest['speedup']:.1f} with benefit {fastest['benefit']:.3f} "
            f"(N_lc = {fastest['N_lc']:.0f})",
            bool(fastest["speedup"] >= 10 and fastest["benefit"] >= 0.99),
        ),
        "sizes_grow_as_alpha_falls": Finding("for all methods" if rising else "not always", rising),
    }
