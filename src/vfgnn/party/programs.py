"""Which programs a command follows: of a run, and of a model that was trained before.

Read by whoever needs to know what may be sent: sessions, `vfgnn doctor`, the plan and the report.
"""

from typing import Any

from vfgnn.alignment.program import AlignmentPlan, aligning
from vfgnn.errors import ConfigError
from vfgnn.files import Alignment, FederationFile
from vfgnn.program import Program, calling, leaving
from vfgnn.split.program import prediction, training


def of_run(file: FederationFile) -> list[Program[Any]]:
    """`vfgnn run`: align where there are tables, train, leave together."""
    return [*_alignment(file), *of_training(file, None)]


def of_training(file: FederationFile, nodes: int | None) -> list[Program[Any]]:
    """What is left of a run when the number of nodes is known."""
    agreement = file.agreement_over(nodes)
    return [training(agreement), leaving(agreement.parties, agreement.label_holder)]


def of_model(file: FederationFile) -> list[Program[Any]]:
    """`vfgnn predict` and `vfgnn serve`: a pass whenever it is asked for, over new nodes too."""
    return [*of_alignment(file), *of_pass(file, None, new_nodes=True)]


def of_alignment(file: FederationFile) -> list[Program[Any]]:
    """Before the nodes of a run or of a pass are known."""
    agreement = file.agreement
    return [calling(agreement.parties, agreement.label_holder), *_alignment(file)]


def of_pass(file: FederationFile, nodes: int | None, *, new_nodes: bool) -> list[Program[Any]]:
    """One pass over so many nodes, and the call for the next one."""
    agreement = file.agreement_over(nodes)
    pass_call = calling(agreement.parties, agreement.label_holder)
    return [pass_call, prediction(agreement, new_nodes=new_nodes)]


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
