"""Names: every resource of a stage is called ``minitickets-<stage>-<thing>``."""

import re

PROJECT = "minitickets"

# The tightest name is the cache's: ElastiCache allows 40 characters, and `minitickets-<stage>-redis` takes 18 of them.
# 20 leaves room for two more; tests/test_naming.py builds every name at this length.
STAGE_MAX_LENGTH = 20

_STAGE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def stage_problem(stage: str) -> str | None:
    """What is wrong with a stage's name, or None. RDS forbids double and final hyphens, S3 capital letters."""
    if not _STAGE.fullmatch(stage):
        return "use lower-case letters, digits and single hyphens, a letter first and no hyphen last"
    if len(stage) > STAGE_MAX_LENGTH:
        return f"it has {len(stage)} characters; at most {STAGE_MAX_LENGTH} fit into the names that AWS allows"
    return None


def stage_name(stage: str) -> str:
    """The beginning of every name of a stage, such as ``minitickets-dev``."""
    return f"{PROJECT}-{stage}"
