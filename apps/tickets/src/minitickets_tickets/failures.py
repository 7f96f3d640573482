"""Why a ticket was not issued. No text here holds a token, an address or a name: it is logged."""


class CallFailed(RuntimeError):  # noqa: N818 - the sentence that it is reads better
    """AWS did not do what was asked, or did not say so.

    ``code`` is the service's error code or the client's error class. ``may_pass`` says that the same call may work
    in a moment (a throttle, a time-out, a fault of the service); the effect may have happened all the same.
    """

    def __init__(self, action: str, code: str, *, may_pass: bool) -> None:
        super().__init__(f"{action} failed: {code}")
        self.action = action
        self.code = code
        self.may_pass = may_pass


class TicketMismatch(RuntimeError):  # noqa: N818 - it is a finding
    """What is stored under a ticket's key is not that ticket: an operator has to look, trying again does not help."""

    def __init__(self, ticket_id: str, field: str) -> None:
        super().__init__(f"what is stored as ticket {ticket_id} is another one: its {field} differs")
        self.ticket_id = ticket_id
        self.field = field


class OutOfTime(RuntimeError):  # noqa: N818 - the rest waits, nothing failed
    """Too little of the invocation is left to begin another seat; the message comes back and goes on from there."""

    def __init__(self, *, seats_done: int, seats: int) -> None:
        super().__init__(f"out of time after {seats_done} of {seats} seats")
        self.seats_done = seats_done
