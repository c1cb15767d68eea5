"""Which programs a command follows: of a run, and of a model that was trained before.

Read by whoever needs to know what may be sent: sessions, `vfgnn doctor`, the plan and the report.
"""

from importlib import import_module
from typing import Any

from vfgnn.agreement import SERVER, Agreement
from vfgnn.alignment.program import AlignmentPlan, aligning
from vfgnn.common_programs import calling, idle, leaving
from vfgnn.errors import ConfigError
from vfgnn.files import Alignment, FederationFile
from vfgnn.program import Program
from vfgnn.sealed import sizes as sealed_sizes
from vfgnn.split import steps as split_steps
from vfgnn.view_file import most_bytes


def training(agreement: Agreement, me: str | None = None) -> Program[Any]:
    """Of the protocol that the settings name, as `me` goes by it; its module is loaded by nobody else.

    A server that aligns ids for sealed training takes no part in it, and may not even load what it is made of.
    """
    if agreement.sealed and me == SERVER:
        return idle("sealed training", agreement.label_holder)
    made: Program[Any] = import_module(f"vfgnn.{agreement.settings.protocol}.program").training(agreement)
    return made


def prediction(agreement: Agreement, me: str | None = None, *, new_nodes: bool) -> Program[Any]:
    """One pass with a trained model, likewise."""
    if agreement.sealed and me == SERVER:
        return idle("sealed prediction", agreement.label_holder)
    folder = import_module(f"vfgnn.{agreement.settings.protocol}.program")
    made: Program[Any] = folder.prediction(agreement, new_nodes=new_nodes)
    return made


def trained_steps(agreement: Agreement) -> int:
    """How many steps a training has, if nothing ends it early."""
    return sealed_sizes.trained_steps(agreement) if agreement.sealed else split_steps.trained_epochs(agreement)


def end_step(agreement: Agreement) -> int:
    """The number of the state that a party ends with."""
    return sealed_sizes.end_step(agreement) if agreement.sealed else split_steps.end_step(agreement)


def checkpoint_steps(agreement: Agreement, every: int, me: str) -> list[int]:
    """The steps at whose beginning `me` writes its state, if it has any."""
    if not agreement.sealed:
        return split_steps.checkpoint_steps(agreement, every)
    return sealed_sizes.checkpoint_steps(agreement, every) if me in keepers(agreement) else [0, end_step(agreement)]


def keepers(agreement: Agreement) -> tuple[str, ...]:
    """Whose state a run goes on from. The sealed protocol's dealer and server begin anew with every start."""
    return agreement.holder_names if agreement.sealed else agreement.parties


def of_run(file: FederationFile, me: str | None = None) -> list[Program[Any]]:
    """`vfgnn run`: align where there are tables, train, leave together. `me`: who follows them; None: any party."""
    return [*_alignment(file), *of_training(file, None, me)]


def most_recorded(file: FederationFile, me: str) -> int:
    """Bytes that one process of `me` may put on its disk where it records its view."""
    return most_bytes(me, (message for program in of_run(file, me) for message in program.messages()))


def of_training(file: FederationFile, nodes: int | None, me: str | None = None) -> list[Program[Any]]:
    """What is left of a run when the number of nodes is known."""
    agreement = file.agreement_over(nodes)
    return [training(agreement, me), leaving(agreement.parties, agreement.label_holder)]


def of_model(file: FederationFile, me: str | None = None) -> list[Program[Any]]:
    """`vfgnn predict` and `vfgnn serve`: a pass whenever it is asked for, over new nodes too."""
    return [*of_alignment(file), *of_pass(file, None, me, new_nodes=True)]


def of_alignment(file: FederationFile) -> list[Program[Any]]:
    """Before the nodes of a run or of a pass are known."""
    agreement = file.agreement
    return [calling(agreement.parties, agreement.label_holder), *_alignment(file)]


def of_pass(file: FederationFile, nodes: int | None, me: str | None = None, *, new_nodes: bool) -> list[Program[Any]]:
    """One pass over so many nodes, and the call for the next one."""
    agreement = file.agreement_over(nodes)
    pass_call = calling(agreement.parties, agreement.label_holder)
    return [pass_call, prediction(agreement, me, new_nodes=new_nodes)]


def _alignment(file: FederationFile) -> list[Program[Any]]:
    return [] if file.alignment is None else [aligning(plan_of(file))]


def plan_of(file: FederationFile) -> AlignmentPlan:
    """Who aligns, and how."""
    how, agreement = alignment_of(file), file.agreement
    return AlignmentPlan(how.method, agreement.holder_names, agreement.label_holder, agreement.others, how.max_ids)


def alignment_of(file: FederationFile) -> Alignment:
    """The federation file's [alignment]."""
    if file.alignment is None:
        raise ConfigError("no alignment", expected="[alignment] in the federation file")
    return file.alignment
