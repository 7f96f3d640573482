"""The two switches of a stage, turned one at a time or both; refused where one needs the other."""

from collections.abc import Mapping

from ops.refusal import Refusal
from ops.stage_file import COMPUTE_ENABLED, DATA_ENABLED, StageSettings

Changes = Mapping[str, bool]


def compute_on(settings: StageSettings, *, stage: str) -> Changes:
    """Refusal while data is off."""
    if not settings.keeps_data:
        raise Refusal(
            f"Compute needs data, which is off in {settings.file}: run make data-on STAGE={stage} first, "
            f"or make wake STAGE={stage} for both"
        )
    return {COMPUTE_ENABLED: True}


def compute_off(settings: StageSettings, *, stage: str) -> Changes:
    """Always allowed."""
    return {COMPUTE_ENABLED: False}


def data_on(settings: StageSettings, *, stage: str) -> Changes:
    """Always allowed."""
    return {DATA_ENABLED: True}


def data_off(settings: StageSettings, *, stage: str) -> Changes:
    """Refusal while compute is on."""
    if settings.computes:
        raise Refusal(
            f"Compute needs data, and is on in {settings.file}: run make compute-off STAGE={stage} first, "
            f"or make sleep STAGE={stage} for both"
        )
    return {DATA_ENABLED: False}


def sleep(settings: StageSettings, *, stage: str) -> Changes:
    """Both off in one run, in which what computes goes before what it uses."""
    return {COMPUTE_ENABLED: False, DATA_ENABLED: False}


def wake(settings: StageSettings, *, stage: str) -> Changes:
    """Both on in one run, in which the database comes first."""
    return {DATA_ENABLED: True, COMPUTE_ENABLED: True}
