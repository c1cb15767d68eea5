"""Why a claim is not reproduced, where we know it; by the beginning of its id. Shown beside its numbers."""

REASONS = {
    "q6-james-stein-epsilon": "it brings a row nearer to the true one, but its factor differs from row to row and "
    "turns rows round, so that a model reads less from them",
}


def reason_for(claim_id: str) -> str | None:
    """The one that is known, if any is."""
    return next((reason for prefix, reason in REASONS.items() if claim_id.startswith(prefix)), None)
