"""Which programs a command follows: of a run, and of a model that was trained before.

Read by whoever needs to know what may be sent: sessions, `vfgnn doctor`, the plan and the report.
"""

from typing import Any

from vfgnn.agreement import Federation
from vfgnn.alignment.program import Plan, aligning
from vfgnn.errors import ConfigError
from vfgnn.files import Alignment, FederationFile
from vfgnn.program import Program, calling, leaving
from vfgnn.split.program import prediction, training


def of_run(file: FederationFile) -> list[Program[Any]]:
    """`vfgnn run`: align where there are tables, train, leave together."""
    federation = file.federation("programs")
    return [*_alignment(file), training(federation), leaving(federation.parties, federation.label_holder)]


def of_model(file: FederationFile) -> list[Program[Any]]:
    """`vfgnn predict` and `vfgnn serve`: a pass whenever it is asked for, over new nodes too."""
    federation = file.federation("programs")
    pass_call = calling(federation.parties, federation.label_holder)
    return [pass_call, *_alignment(file), prediction(federation, new_nodes=True)]


def _alignment(file: FederationFile) -> list[Program[Any]]:
    return [] if file.alignment is None else [aligning(plan_of(file, file.federation("programs")))]


def plan_of(file: FederationFile, federation: Federation) -> Plan:
    """Who aligns, and how."""
    how = alignment_of(file)
    return Plan(how.method, federation.holder_names, federation.label_holder, federation.others, how.max_ids)


def alignment_of(file: FederationFile) -> Alignment:
    """The federation file's [alignment]."""
    if file.alignment is None:
        raise ConfigError("no alignment", expected="[alignment] in the federation file")
    return file.alignment
