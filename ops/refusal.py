"""How the operator's commands say no: before anything is touched, or after something went wrong on the way."""


class Refusal(Exception):  # noqa: N818 - it is an answer, not a fault
    """Nothing was changed. The message says what is wrong and what to do; the command ends with exit code 2."""

    exit_code = 2


class Failure(Exception):  # noqa: N818 - named beside Refusal, which is its counterpart
    """Something was begun and did not end well. The message says what holds now and what to do; exit code 1."""

    exit_code = 1
