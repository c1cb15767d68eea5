"""The paper's arXiv column on features made from texts (data set `arxiv_text`), because OGB's own are not to be had.

These features carry another model's guess of a paper's class, so only orderings between rows can be compared with the
paper's. Two holders, K = 2, training rows in batches with sampled neighbours. GraphSAGE_A, _B and _A+B are trained in
the same batches, as federations of one holder. Preset `best` propagates over whole graphs: it has one batch.

Values are the best of a handful of points on the validation nodes of partition 1000, which no result is reported with.
They are looked for with fewer epochs than the rows are trained for.
"""

from collections.abc import Iterable, Mapping

from vfgnn.experiments.catalogue import ARXIV_TEXT, COMPARE, Model
from vfgnn.experiments.runner import SEARCHED_FROM, Store, Task, TaskResult, make_task
from vfgnn.experiments.tables import Compared, TableRow, compare_rows, open_rows
from vfgnn.settings import Preset, Settings

SEEDS = 2
Results = Mapping[Task, TaskResult]
Change = dict[str, object]
Kind = tuple[str, str]  # preset, and what values are chosen for: a combine, `isolated` or `pooled`

COMMON: dict[str, Change] = {
    "paper": {
        "layers": 2,
        "dim": 64,
        "weight_decay": 0.0001,
        "publish": "needed",
        "batch_rows": 5000,
        "fanout": (10, 5),
        "epochs": 20,
        "evaluate_every": 2,
        "patience": 6,
    },
    "best": {"layers": 2, "dim": 64, "weight_decay": 0.0001, "epochs": 40, "evaluate_every": 5, "patience": 10},
}
"""By preset: what all of its rows have."""
SEARCH_EPOCHS = {"paper": 6, "best": 15}
POINTS: dict[str, tuple[Change, ...]] = {
    "paper": tuple(
        {"learning_rate": rate, "joint_learning_rate": joint}
        for rate, joint in ((0.003, 0.1), (0.01, 0.1), (0.01, 1.0), (0.01, 3.0), (0.03, 1.0))
    ),
    "best": tuple({"learning_rate": rate, "joint_learning_rate": 0.3} for rate in (0.03, 0.1)),
}


def settings_of(model: Model, point: Change, *, search: bool = False) -> Settings:
    """Of one row."""
    combine: Change = {} if model.combine is None else {"combine": model.combine}
    shorter: Change = {"epochs": SEARCH_EPOCHS[model.preset], "patience": None} if search else {}
    return Preset(model.preset).settings(overrides={**combine, **COMMON[model.preset], **point, **shorter})


def _kind(model: Model) -> Kind:
    return model.preset, model.tuned_as


def _judged(models: Iterable[Model]) -> dict[Kind, Model]:
    """The rows that values are chosen with: of the isolated ones the first holder's."""
    first: dict[Kind, Model] = {}
    for model in models:
        first.setdefault(_kind(model), model)
    return first


def _search_task(model: Model, point: Change) -> Task:
    settings = settings_of(model, point, search=True)
    return make_task(settings, dataset=ARXIV_TEXT, where=model.where, seed=SEARCHED_FROM, holder=model.holder)


def search_tasks(models: Iterable[Model] = COMPARE) -> dict[Task, str]:
    """The trainings that values are chosen by, and what each one is."""
    return {
        _search_task(model, point): f"choosing for {model.name}"
        for model in _judged(models).values()
        for point in POINTS[model.preset]
    }


def chosen_points(results: Results, models: Iterable[Model] = COMPARE) -> dict[Kind, tuple[Change, float]]:
    """By kind of row the point with the best validation accuracy, and that accuracy."""
    chosen: dict[Kind, tuple[Change, float]] = {}
    for kind, model in _judged(models).items():
        scored = [(point, results[_search_task(model, point)]["val_accuracy"]) for point in POINTS[model.preset]]
        chosen[kind] = max(scored, key=lambda one: one[1])
    return chosen


def told(results: Results) -> list[dict[str, object]]:
    """What was chosen, for a record; no test figure is in it."""
    return [
        {"preset": preset, "model": model, "values": point, "val_accuracy": reached}
        for (preset, model), (point, reached) in chosen_points(results).items()
    ]


def row_tasks(results: Results, seeds: int = SEEDS, models: Iterable[Model] = COMPARE) -> dict[Task, list[Compared]]:
    """The trainings of the rows, with the values that were chosen."""
    models = tuple(models)
    chosen = chosen_points(results, models)
    tasks: dict[Task, list[Compared]] = {}
    for model in models:
        settings = settings_of(model, chosen[_kind(model)][0])
        for seed in range(seeds):
            task = make_task(settings, dataset=ARXIV_TEXT, where=model.where, seed=seed, holder=model.holder)
            tasks[task] = [Compared(model, "undirected")]
    return tasks


def kept_rows(store: Store, seeds: int = SEEDS) -> tuple[list[TableRow], list[Task]]:
    """The rows of which everything is in the store, and its trainings; if there are none, the paper's stand alone."""
    rows: list[TableRow] = []
    trained: list[Task] = []
    for kind in _judged(COMPARE):
        models = [model for model in COMPARE if _kind(model) == kind]
        searched = _kept(store, search_tasks(models))
        tasks = {} if searched is None else row_tasks(searched, seeds, models)
        results = _kept(store, tasks)
        if searched is not None and tasks and results is not None:
            rows += compare_rows(tasks, results)
            trained += [*searched, *tasks]
    order = [model.name for model in COMPARE]
    return sorted(rows, key=lambda row: order.index(row.model)) or open_rows(), trained


def _kept(store: Store, tasks: Iterable[Task]) -> dict[Task, TaskResult] | None:
    found = {task: store.get(task) for task in tasks}
    kept = {task: result for task, result in found.items() if result is not None}
    return kept if len(kept) == len(found) else None
