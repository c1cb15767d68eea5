import pytest

from vfgnn.agreement import HolderShape, make_agreement
from vfgnn.errors import ConfigError
from vfgnn.settings import Preset, Settings, make_settings


def federation(holders=((3, True), (2, True)), **settings):
    shapes = [HolderShape(name=f"h{i}", features=p, edges=e) for i, (p, e) in enumerate(holders)]
    return make_agreement(nodes=10, classes=3, holders=shapes, label_holder="h0", settings=Settings(**settings))


@pytest.mark.parametrize("preset", ["paper", "best"])
@pytest.mark.parametrize("dataset", ["cora", "citeseer", "pubmed", None])
@pytest.mark.parametrize("model", [None, "isolated", "pooled"])
def test_presets_load(preset, dataset, model):
    assert Preset(preset).settings(dataset=dataset, model=model).epochs > 0


def test_overrides_win_over_what_was_chosen():
    settings = Preset("best").settings(dataset="cora", overrides={"dim": 7, "publish": "all"})
    assert (settings.dim, settings.publish) == (7, "all")


def test_a_changed_combine_takes_the_values_chosen_for_it():
    preset = Preset("paper")
    chosen = preset._chosen.get("cora", {}).get("concat", {})
    settings = preset.settings(dataset="cora", overrides={"combine": "concat"})
    assert {key: getattr(settings, key) for key in chosen} == chosen


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"laeyrs": 2}, "laeyrs"),
        ({"layers": 0}, "layers"),
        ({"combine": "max"}, "combine"),
        ({"dropout": 1.0}, "dropout"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"joint_layer": "open"}, "joint_layer"),
        ({"fanout": [3], "layers": 2}, "fanout"),
        ({"fanout": [3, 3], "gnn": "appnp"}, "fanout"),
        ({"joint_nesterov": True, "joint_momentum": 0.0}, "joint_momentum"),
    ],
)
def test_bad_settings_are_named(values, named):
    with pytest.raises(ConfigError, match=named):
        make_settings(values, where="test")


def test_unknown_preset():
    with pytest.raises(ConfigError, match="best, paper"):
        Preset("bset")


def test_settings_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        Settings().dim = 3


def test_who_publishes():
    assert federation(((3, True), (2, False))).publishers == ("h0",)
    alone = federation(((3, True), (2, False), (0, True), (0, False)), initial_embedding="individual")
    assert alone.publishers == ("h0", "h1", "h2")


@pytest.mark.parametrize("holders", [((3, False), (2, False)), ((0, True), (0, True))])
def test_a_federation_that_cannot_learn_is_refused(holders):
    with pytest.raises(ConfigError):
        federation(holders)


def test_names_are_checked():
    shapes = [HolderShape(name="server", features=1, edges=True)]
    with pytest.raises(ConfigError, match="server"):
        make_agreement(nodes=3, classes=2, holders=shapes, label_holder="server", settings=Settings())
    shapes = [HolderShape(name="a", features=1, edges=True)]
    with pytest.raises(ConfigError, match="label_holder"):
        make_agreement(nodes=3, classes=2, holders=shapes, label_holder="b", settings=Settings())


def test_revealed_dimensions():
    assert federation(epochs=10, dim=4).revealed_dimensions() == 44
    assert federation(epochs=10, dim=4, joint_layer_epochs=2).revealed_dimensions() == 12
    assert federation(epochs=10, dim=4).revealed_dimensions(5) == 24
    assert federation(epochs=10, dim=4, initial_embedding="individual").revealed_dimensions() == 0
