"""`vfgnn predict`: the model of a finished run, asked again."""

from pathlib import Path
from typing import Annotated

import typer

from vfgnn.writing import keep_private


def predict(
    federation: Annotated[Path, typer.Argument(help="The public file, the same at all parties.")],
    party: Annotated[Path, typer.Argument(help="This party's own file.")],
    nodes: Annotated[
        Path | None, typer.Option(help="Label holder: a table with the ids to predict. Default: all common nodes.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Label holder: where predictions go, .csv or .parquet.")] = None,
    new_nodes: Annotated[
        bool, typer.Option("--new-nodes", help="Also ids that came after training; all parties must say it.")
    ] = False,
    with_parent: Annotated[bool, typer.Option("--with-parent", hidden=True)] = False,
) -> None:
    """Predict with the model of a finished run. All parties run this; only the label holder learns the predictions.

    Ids that not all holders have get no prediction, and the column `status` says why. New ids are appended to the
    holders' tables; with --new-nodes they are aligned and predicted without training again.

    Example: `vfgnn predict federation.toml party.toml --nodes ask.csv --out predictions.csv`
    """
    import pyarrow.compute as pc

    from vfgnn.errors import ConfigError
    from vfgnn.files import load_federation, load_party
    from vfgnn.party.child import end_with_parent
    from vfgnn.party.predict import Predictor, check_out, wanted_ids, write_table
    from vfgnn.party.trained import OK

    if with_parent:
        end_with_parent()
    keep_private()
    file, own = load_federation(federation), load_party(party)
    leads = own.name == file.label_holder
    if leads != (out is not None) or (nodes is not None and not leads):
        wanted = "--out (and --nodes) at the label holder" if leads else "neither --nodes nor --out: it learns nothing"
        raise ConfigError(f"{own.name} cannot predict so", expected=wanted)
    if out is not None:
        check_out(out)
    table = Predictor(file, own, new_nodes=new_nodes).predict(wanted_ids(own, nodes))
    if table is None or out is None:
        typer.echo("done; the label holder has the predictions")
        return
    write_table(table, out)
    known = pc.sum(pc.equal(table["status"], OK)).as_py()
    typer.echo(f"{out}: {known} of {table.num_rows} ids predicted")
