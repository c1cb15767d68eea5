"""After a sealed training: run, predict and serve say the same, from what the label holder keeps."""

import pytest
import requests
import torch
from safetensors.torch import load_file

import vfgnn
from tests.conftest import random_graph
from tests.network import QUICK, check_tls13, open_to_others, proxied, small
from vfgnn.bench.serve import Served
from vfgnn.lab.federation import split_labels
from vfgnn.lab.processes import LocalProcesses
from vfgnn.message_log import read_entries
from vfgnn.party.programs import end_step

GRAPH = random_graph()
SEALED = {"protocol": "sealed", "sealed": {"hops": 2, "steps": 2, "ridges": [0.3, 1.0]}}


def trained(folder, **changes):
    settings = {**SEALED, "sealed": {**SEALED["sealed"], **changes}}
    local = small(folder, graph=GRAPH, patience=QUICK, **settings)
    with LocalProcesses(local) as running:
        running.wait()
    return local


@pytest.fixture(scope="module")
def proxies_saw(tmp_path_factory):
    """A federation that was trained with a proxy before every party, and what these have seen of each link."""
    local = small(tmp_path_factory.mktemp("sealed") / "federation", graph=GRAPH, patience=QUICK, **SEALED)
    public = local.federation_toml.read_text()
    with proxied(local, *local.names) as (through, proxies):
        with LocalProcesses(through) as running:
            running.wait()
        seen = [pair for proxy in proxies.values() for pair in proxy.seen if pair[1]]
    local.federation_toml.write_text(public)  # afterwards without them
    return local, seen


@pytest.fixture(scope="module")
def local(proxies_saw):
    return proxies_saw[0]


def test_proxies_between_all_parties_see_tls_13_and_nothing_else(proxies_saw):
    """Kinds of messages, columns as numbers and as words, and which rows train: none of it can be read on any link."""
    local, seen = proxies_saw
    assert len(seen) == 3  # A-B, and each of them with the dealer; there is no server
    roles = (GRAPH.train_mask.byte() + 2 * GRAPH.val_mask.byte()).numpy().tobytes()
    columns = [GRAPH.x[:8, 0], (GRAPH.x[:8, 0].double() * 2**16).round().long()]
    words = [b"vfgnn run", b'"type"', b"websocket", *(kind.encode() for kind in kinds(local, "A"))]
    for pair in seen:
        check_tls13(*pair, [roles, *(column.numpy().tobytes() for column in columns), *words])


def kinds(local, name):
    """Of all messages of a party's run, but for names that random bytes have by chance."""
    found = {entry.kind for entry in read_entries(local.run_folder(name) / "messages.jsonl")}
    return {kind for kind in found if len(kind) > 7}


def kept(local, name):
    """What a party's run left of its model."""
    end = end_step(local.file.agreement)
    return load_file(local.run_folder(name) / "checkpoints" / f"step-{end:08d}.safetensors")


def test_run_predict_and_serve_say_the_same(local):
    opened = kept(local, "A")["opened/values"][:, 0]
    test = split_labels(GRAPH).test
    assert local.outcome.test_accuracy == float((opened[test] == GRAPH.y[test]).double().mean())
    answer = vfgnn.predict(local.folder)
    assert torch.equal(answer.y_pred, opened)
    assert "probability" not in answer
    with Served(local) as served:
        said = requests.post(served.url, json={"ids": [str(row) for row in range(40)]}, timeout=60).json()
    found = said["predictions"]
    assert [one["class"] for one in found] == [str(number) for number in opened.tolist()]
    assert {one["probability"] for one in found} == {None}
    for name in local.names:  # no row is opened again: nothing was sent but the call for a pass, of one byte
        logs = list(local.run_folder(name).glob("*/*/messages.jsonl"))
        assert [entry.kind for log in logs for entry in read_entries(log)] in (["pass"], ["pass"] * 2)


def test_others_keep_no_prediction(local):
    """Which rows were opened, and nothing that was; shares of the weights are each holder's own."""
    own, other = kept(local, "A"), kept(local, "B")
    assert other["opened/values"].shape == (40, 0) and len(other["opened/rows"]) == 40
    assert not {"scores", "val_accuracy"} & set(other) and {"scores", "val_accuracy"} < set(own)
    assert set(kept(local, "dealer")) == set()
    for owner in ("A", "B"):
        assert not torch.equal(own[f"weights/{owner}"], other[f"weights/{owner}"])
    assert [path for name in local.names for path in open_to_others(local.run_folder(name))] == []


@pytest.mark.slow
def test_scores_have_probabilities_everywhere(tmp_path):
    local = trained(tmp_path / "federation", opens="scores")
    answer = vfgnn.predict(local.folder)
    opened = kept(local, "A")["opened/values"].double() * 2.0**-18
    torch.testing.assert_close(answer.probability, opened.softmax(dim=1), rtol=0, atol=1e-12)  # of float64
