"""A holder joins, a holder leaves, a certificate is replaced: by the files, as docs/membership.md tells it."""

import json

import pytest
import torch

import vfgnn
from tests.network import new_certificate, rewrite
from tests.tables import vfgnn as command
from tests.tables import write_tables
from vfgnn.checkpoint import Checkpoints
from vfgnn.differences import differences
from vfgnn.errors import CheckpointRefused
from vfgnn.files import FederationFile, load_federation, load_party
from vfgnn.lab.local_files import LocalFederation, free_ports
from vfgnn.lab.processes import LocalProcesses
from vfgnn.party.predict import Predictor
from vfgnn.split.steps import end_step
from vfgnn.transport import certificates, tls

HOLDERS = ("bank", "shop", "phone")
SETTINGS = ("protocol=split", "epochs=4", "patience=4", "dim=8", "layers=2")


def make_parties(folder):
    """Everybody's own key, party.toml and card; nobody is in a federation yet."""
    write_tables(folder, HOLDERS)
    for name, port in zip(("server", *HOLDERS), free_ports(4), strict=True):
        home = folder / name
        command("keys", "new", name, "--folder", home)
        tables = ["--nodes", home / "nodes.csv", "--edges", home / "edges.csv"] if name in HOLDERS else []
        tables += ["--labels", home / "labels.csv"] if name == "bank" else []
        command("init", "party", name, "--folder", home, "--address", f"localhost:{port}", *tables)


def agree(folder, *holders):
    """A new federation file from the cards; the one before is put aside."""
    path = folder / "federation.toml"
    if path.exists():
        path.rename(folder / f"federation-{len(list(folder.glob('federation*.toml')))}.toml")
    cards = [folder / name / f"{name}.card.toml" for name in ("server", *holders)]
    sets = [word for setting in SETTINGS for word in ("--set", setting)]
    command("init", "federation", *cards, "--out", path, "--alignment", "tokens", *sets)
    return LocalFederation.load(folder)


def train(local):
    with LocalProcesses(local) as running:
        running.wait()
    return about(local, "bank")["run"]


def about(local, name):
    return json.loads((local.run_folder(name) / "run.json").read_text())


def keys(folder):
    return {path: path.read_bytes() for path in sorted(folder.glob("*/*.pem"))}


def refused(local, name):
    with pytest.raises(CheckpointRefused) as caught:
        Predictor(local.file, load_party(local.party_toml(name))).predict(None)
    return str(caught.value)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_holder_joins_and_another_leaves(tmp_path):
    make_parties(tmp_path)
    before = keys(tmp_path)
    two = agree(tmp_path, "bank", "shop")
    first = train(two)

    three = agree(tmp_path, "bank", "shop", "phone")
    assert "checkpoint of another federation" in refused(three, "bank")
    assert "checkpoint of another federation" in refused(three, "server")
    assert "phone has no trained model" in refused(three, "phone")
    second = train(three)
    assert second != first
    for name in ("server", "bank", "shop"):  # the records of the first run stay
        assert (three.folder / name / f"run-{first}" / "checkpoints").is_dir()
    assert not list((three.folder / "phone").glob("run-*"))
    assert {about(three, name)["run"] for name in three.names} == {second}
    assert (
        about(three, "bank")["nodes"]
        < json.loads((three.folder / "bank" / f"run-{first}" / "run.json").read_text())["nodes"]
    )  # those that all three know

    left = agree(tmp_path, "bank", "phone")
    assert "checkpoint of another federation" in refused(left, "phone")
    third = train(left)
    assert about(left, "shop")["run"] == second  # nobody asked it for anything
    assert {about(left, name)["run"] for name in left.names} == {third}
    assert keys(tmp_path) == before
    der = certificates.load(tmp_path / "shop" / "shop.certificate.pem").public_bytes(certificates.Encoding.DER)
    assert tls.Trust.of(left.file).who(der) is None and tls.Trust.of(three.file).who(der) == "shop"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_new_certificate_keeps_the_model(tmp_path):
    make_parties(tmp_path)
    local = agree(tmp_path, "bank", "shop")
    train(local)
    known = vfgnn.predict(tmp_path)
    rotated = rewrite(local, shop={"certificate": new_certificate(local, "shop")})
    assert rotated.file.digest != local.file.digest
    assert torch.equal(vfgnn.predict(tmp_path).probability, known.probability)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("membership")
    make_parties(folder)
    two = agree(folder, "bank", "shop").file
    return folder, two, agree(folder, "bank", "shop", "phone").file


def test_parties_with_the_old_and_the_new_file_hear_what_differs(files):
    folder, two, three = files
    assert [where for where, _, _ in differences(two.document, three.document)] == ["holders"]
    assert load_federation(folder / "federation-1.toml") == two


def write_unfinished(folder, file):
    """A party's run that was killed in its first steps."""
    federation = file.agreement
    kept = Checkpoints(folder, party="bank", federation=federation.digest, scheduled=[0])
    kept.go_back("0" * 16, 0)
    kept.remember(0, {"weight": torch.ones(1)})
    kept.write(0)
    return federation


def test_the_checkpoints_of_an_unfinished_run_are_refused_by_name(files, tmp_path):
    _, two, three = files
    write_unfinished(tmp_path, two)
    digest = three.agreement.digest
    with pytest.raises(CheckpointRefused, match="checkpoint of another federation") as caught:
        Checkpoints(tmp_path, party="bank", federation=digest, scheduled=[0])
    assert "--fresh" in str(caught.value)


def test_addresses_and_certificates_are_no_part_of_the_model(files, tmp_path):
    folder, two, _ = files
    federation = write_unfinished(tmp_path, two)
    document = two.document
    document["server"]["address"] = "elsewhere.example:7000"
    document["server"]["certificate"] = (folder / "phone" / "phone.certificate.pem").read_text()
    moved = FederationFile.model_validate(document)
    assert moved.agreement.digest == federation.digest and moved.digest != two.digest
    assert Checkpoints(tmp_path, party="bank", federation=federation.digest, scheduled=[0]).steps == [0]
    assert end_step(federation) == 5
