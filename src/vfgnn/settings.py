"""The settings of a model and how it is trained, and the presets that name some of them.

Public and identical at all parties. Unknown keys are refused, so that a typing error cannot silently train something
else.
"""

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from vfgnn.errors import ConfigError
from vfgnn.explained import explain

Gnn = Literal["sage_mean", "sage_lstm", "sage_pool", "gcn", "gat", "appnp", "own"]
Combine = Literal["concat", "mean", "regression", "confidence", "own"]
FeatureScaling = Literal["none", "row"]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
MOST = 2**40  # of anything that is counted: far beyond any federation, and no number that overflows
Count = Annotated[int, Field(ge=0, le=MOST)]
Whole = Annotated[int, Field(ge=1, le=MOST)]  # at least one
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]


class Public(BaseModel):
    """Frozen and closed: a public value is what all parties compared, and nothing else."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Privacy(Public):
    """What is noised before it leaves, and how much (privacy/, docs/privacy.md). An epsilon of None is off."""

    # every release of a row: h_local to the server, dL/dz_L to the server
    row_epsilon: Positive | None = None
    gradient_epsilon: Positive | None = None
    per: Literal["release", "run"] = "release"  # what these two are for: each release, or all of a run together
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-4  # and less than 1/n
    calibration: Literal["analytic", "classical"] = "analytic"  # classical: the paper's, for reproduction only
    adjacency: Literal["zero_out", "replace_one"] = "zero_out"  # what two neighbouring messages differ in: one row
    clip_norm: Positive = 1.0  # C
    gradient_clip_norm: Positive = 1.0  # of the gradient of a row's own loss
    shrink: Literal["none", "james_stein", "james_stein_positive", "known_norm"] = "none"
    average_releases: Fraction = 0.0  # the server's moving average over successive releases of a row: its memory
    # for any row, any edge and any label, each at delta and over all runs in a holder's ledger; None: no limit
    budget_epsilon: Positive | None = None
    # the data itself, once
    edge_epsilon: Positive | None = None
    publish_noised_edges: bool = False  # the holders exchange them, and each aggregates over all of them
    noised_edge_bound: Whole = 10_000_000  # pairs in one list, at most
    label_epsilon: Positive | None = None
    label_correction: bool = False  # the loss of the noised labels' distribution instead of their own

    @property
    def noises_rows(self) -> bool:
        """Whether any message is noised at every release."""
        return self.row_epsilon is not None or self.gradient_epsilon is not None

    @property
    def off(self) -> bool:
        """Whether nothing is noised at all."""
        return not (self.noises_rows or self.edge_epsilon is not None or self.label_epsilon is not None)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.publish_noised_edges and self.edge_epsilon is None:
            raise ValueError("publish_noised_edges needs edge_epsilon: edges never leave a holder as they are")
        if self.label_correction and self.label_epsilon is None:
            raise ValueError("label_correction needs label_epsilon")
        if self.row_epsilon is None and (self.shrink != "none" or self.average_releases):
            raise ValueError("shrink and average_releases need row_epsilon: there is no noise to reduce")
        if self.budget_epsilon is not None:
            self._refuse_unusable_budget(self.budget_epsilon)
        return self

    def _refuse_unusable_budget(self, budget: float) -> None:
        if self.off:
            raise ValueError("budget_epsilon needs row_epsilon, gradient_epsilon, edge_epsilon or label_epsilon")
        for key, epsilon in (("edge_epsilon", self.edge_epsilon), ("label_epsilon", self.label_epsilon)):
            if epsilon is not None and epsilon > budget:
                raise ValueError(f"{key} = {epsilon:g} is more than budget_epsilon = {budget:g} allows for one release")


class Sealed(Public):
    """The model of the sealed protocol (`protocol = "sealed"`, docs/sealed.md). The defaults serve any data set."""

    kernel: Literal["smooth", "hops"] = "smooth"  # smooth: neighbours are alike; hops: a weight for each hop (tables)
    order: Literal["auto", "labels", "features"] = "auto"  # what travels; auto: what is cheaper by public sizes
    hops: Annotated[int, Field(ge=1, le=64)] | None = None  # K; None: 10 for smooth, 2 for hops
    teleport: Fraction = 0.1  # alpha of smooth: how much a node stays itself in each hop
    steps: Annotated[int, Field(ge=1, le=32)] = 4  # vectors of the Krylov space; t
    # strengths of the ridge, as multiples of the first Rayleigh quotient: validation classes choose among them
    ridges: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=16)] = (0.1, 0.3, 1.0, 3.0)
    minimum: Literal["weights", "kernel"] = "weights"  # what coefficients minimise (model/krylov.py)
    # what each holder makes of its own columns, by itself, before anything else (data/feature_maps.py)
    # bins: quantile bins of each column, 0 or 1; binary: 1 where a value is above 0
    columns: Literal["as they are", "bins", "binary"] = "as they are"
    bins: Annotated[int, Field(ge=2, le=64)] = 12
    own_degree: bool = False  # the number of its own neighbours as one more column, in bins
    scaled: bool = False  # every column that comes of it less its mean, over its deviation
    degree_bits: Annotated[int, Field(ge=2, le=14)] = 8  # degrees of the union graph fit, or their edges are dropped
    columns_at_once: Whole = 64  # in the order of features: bounds the memory
    opens: Literal["classes", "scores"] = "classes"  # what the label holder learns of the rows it asks for

    @property
    def depth(self) -> int:
        """K, also where it is left open."""
        return self.hops or (10 if self.kernel == "smooth" else 2)


class Settings(Public):
    """The model and how it is trained. Names as in the paper; the comments say what differs from it."""

    protocol: Literal["split", "sealed"] = "split"  # the paper's, or the one that opens nothing but predictions
    sealed: Sealed = Sealed()
    # CG1 features
    feature_scaling: FeatureScaling = "none"  # row: each holder divides each row of its own block by its sum
    initial_embedding: Literal["collaborative", "individual"] = "collaborative"
    joint_layer: Literal["secure", "insecure_clear"] = "secure"
    joint_layer_epochs: Count | None = None  # None: trained in every epoch, as in the paper
    joint_learning_rate: Positive = 1.0  # momentum SGD: the only kind of step that shares can take
    joint_momentum: Fraction = 0.9
    joint_nesterov: bool = False
    joint_weight_decay: NotNegative = 0.0
    feature_bound: Positive = 1024.0  # public: |x| of any feature; how large it may be: h0_bound.py
    accept_h0_leak: bool = False  # all parties know what the reveals of h0 give away (model/leak_meter.py)
    update_bound: Positive = 2048.0  # public: |Q_i| of any holder, see split/joint_layer.py
    dim: Annotated[int, Field(ge=1, le=4096)] = 64
    # CG1 edges
    gnn: Gnn = "sage_mean"
    layers: Annotated[int, Field(ge=1, le=64)] = 2  # K; for APPNP the number of propagation steps
    embedding_activation: Literal["none", "tanh"] = "none"  # applied to h0 before the GNN
    teleport: Fraction = 0.1  # APPNP's alpha
    fanout: tuple[Whole, ...] | None = None  # neighbours sampled per layer while training
    # CG2
    combine: Combine = "mean"
    confidence_degree: Whole = 8  # D: degrees from here on count as full confidence
    row_scale: Positive = 1.0  # unit rows are flat: what the server multiplies combined rows by
    hidden_layers: Annotated[int, Field(ge=0, le=16)] = 1
    head_scale: Positive = 1.0  # the first layer's weights after the combine begin so many times as wide
    output_scale: Positive = 1.0  # the output layer's weights, likewise
    accept_row_leak: bool = False  # all parties know that the label holder can rebuild rows (model/leak_meter.py)
    dropout: Fraction = 0.5
    # training
    learning_rate: Positive = 0.01  # Adam, each party for the weights that it holds alone
    weight_decay: NotNegative = 0.0005
    epochs: Whole = 200
    batch_rows: Whole | None = None  # training rows in a batch, at most; None: all at once
    evaluate_every: Whole = 1
    patience: Whole | None = None  # epochs without a better validation accuracy; None: never stop
    select_by: Literal["accuracy", "f1", "auc", "average_precision"] = "accuracy"  # which epoch is best, on validation
    class_weights: Literal["none", "balanced"] = "none"  # balanced: rare classes count as much as frequent ones
    publish: Literal["needed", "all"] = "needed"
    precision: Literal["float32", "float64"] = "float32"
    privacy: Privacy = Privacy()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.protocol == "sealed" and not self.privacy.off:
            raise ValueError("protocol = sealed noises nothing: leave [settings.privacy] out, or use protocol = split")
        if self.protocol == "sealed" and self.select_by not in ("accuracy", "f1"):
            raise ValueError(
                f"protocol = sealed chooses its ridge by classes, so select_by = {self.select_by} cannot be used: "
                "use accuracy or f1"
            )
        if self.fanout is not None and self.gnn in ("appnp", "own"):
            raise ValueError(f"fanout cannot be used with gnn = {self.gnn}: it samples once per layer of a GNN of ours")
        if self.fanout is not None and len(self.fanout) != self.layers:
            raise ValueError(f"fanout needs one number per layer: layers = {self.layers}, got {len(self.fanout)}")
        if self.batch_rows is not None and self.publish != "needed":
            raise ValueError(
                f"batch_rows needs publish = needed: publish = {self.publish} sends all rows in every batch"
            )
        if self.joint_nesterov and self.joint_momentum == 0:
            raise ValueError("joint_nesterov needs joint_momentum > 0")
        if self.privacy.shrink.startswith("james_stein") and self.dim < 3:
            raise ValueError(f"James-Stein needs dim >= 3, not {self.dim}")
        if self.tells_degrees and self.privacy.row_epsilon is not None and self.privacy.edge_epsilon is None:
            raise ValueError(
                f"combine = {self.combine} tells the server each holder's degrees, which row noise does not hide: "
                "use another combine, or edge_epsilon, so that the degrees are those of noised edges"
            )
        return self

    @property
    def dtype(self) -> torch.dtype:
        """Of all local computation and of the messages to and from the server."""
        return torch.float64 if self.precision == "float64" else torch.float32

    @property
    def tells_degrees(self) -> bool:
        """Whether a holder's rows tell the server its degrees: the combine needs rows of different lengths."""
        return self.combine == "confidence"

    @property
    def trained_joint_epochs(self) -> int:
        """R: after so many steps h0 is constant."""
        return self.epochs if self.joint_layer_epochs is None else min(self.joint_layer_epochs, self.epochs)


def make_settings(values: Mapping[str, object], where: str) -> Settings:
    """Checked settings, or a ConfigError that names the key."""
    try:
        return Settings.model_validate(dict(values))
    except ValidationError as error:
        raise explain(error, where, Settings) from None


class Preset:
    """A named TOML file of settings.

    `<name>.toml` holds what is always so; `<name>_chosen.toml` what `vfgnn reproduce search` chose on the validation
    nodes for one data set and one model (a way to combine, `isolated` or `pooled`).
    """

    def __init__(self, name: str) -> None:
        folder = resources.files("vfgnn") / "presets"
        files = {Path(str(entry)).stem for entry in folder.iterdir() if str(entry).endswith(".toml")}
        known = sorted(stem for stem in files if not stem.endswith("_chosen"))
        if name not in known:
            raise ConfigError("unknown preset", expected=f"one of {', '.join(known)}", got=name)
        self.name = name
        self._settings: dict[str, object] = tomllib.loads((folder / f"{name}.toml").read_text())
        self._chosen: dict[str, dict[str, dict[str, object]]] = {}
        if f"{name}_chosen" in files:
            self._chosen = tomllib.loads((folder / f"{name}_chosen.toml").read_text())

    @property
    def document(self) -> dict[str, object]:
        """What is always so, for whoever writes it into a file of its own."""
        return dict(self._settings)

    def settings(
        self,
        *,
        dataset: str | None = None,
        model: str | None = None,
        overrides: Mapping[str, object] | None = None,
        edge_split: str = "undirected",
    ) -> Settings:
        """The preset's settings for a model (its way to combine if None), then the user's own `overrides`.

        With `edge_split = "directed"`, what was chosen for that reading where anything was. The model of the sealed
        protocol is one and the same for a federation, a holder alone and pooled data.
        """
        overrides = overrides or {}
        of_both = {**self._settings, **overrides}
        model = "sealed" if of_both.get("protocol") == "sealed" else model or str(of_both.get("combine"))
        by_model = self._chosen.get(dataset or "", {})
        chosen = by_model.get(f"{model}_{edge_split}", by_model.get(model, {}))
        values = {**self._settings, **chosen, **overrides}
        for table in ("privacy", "sealed"):
            given = [part[table] for part in (self._settings, chosen, overrides) if table in part]
            tables = [part for part in given if isinstance(part, dict)]
            if tables and len(tables) == len(given):  # anything else is refused below, by its name
                values[table] = {key: value for part in tables for key, value in part.items()}
        return make_settings(values, where=f"preset {self.name} with your settings")
