"""A person in front of the API, for the demo and for tests: registers, books and lists tickets over HTTP."""

import json
import uuid
from collections.abc import Callable
from typing import Any

import httpx


class ApiRefusedError(RuntimeError):
    """The API answered with an error; ``code`` is tRPC's."""

    def __init__(self, procedure: str, message: str, code: str) -> None:
        super().__init__(f"{procedure}: {code}: {message}")
        self.code = code


class Visitor:
    """One person with a session of their own, and an address of their own: rate limits count by address."""

    def __init__(self, api_url: str, *, address: str = "203.0.113.1") -> None:
        self._http = httpx.Client(
            base_url=api_url,
            headers={"X-Forwarded-For": address},
            timeout=httpx.Timeout(20, connect=5),
            trust_env=False,
        )

    def __enter__(self) -> "Visitor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def query(self, procedure: str, value: object = None) -> Any:
        """Call a query."""
        parameters = {} if value is None else {"input": json.dumps(value)}
        return self._result(procedure, lambda: self._http.get(f"/trpc/{procedure}", params=parameters))

    def mutate(self, procedure: str, value: object) -> Any:
        """Call a mutation."""
        return self._result(procedure, lambda: self._http.post(f"/trpc/{procedure}", json=value))

    def register(self, *, email: str, name: str, password: str) -> None:
        """Make an account and be signed in."""
        self.mutate("auth.register", {"email": email, "name": name, "password": password})

    def login(self, *, email: str, password: str) -> None:
        """Be signed in."""
        self.mutate("auth.login", {"email": email, "password": password})

    def book(self, *, event_id: str, seats: list[str], idempotency_key: str | None = None) -> dict[str, Any]:
        """Book seats; the booking."""
        key = idempotency_key or str(uuid.uuid4())
        booking: dict[str, Any] = self.mutate(
            "bookings.create", {"eventId": event_id, "seats": seats, "idempotencyKey": key}
        )
        return booking

    def tickets(self) -> list[dict[str, Any]]:
        """All tickets of this person."""
        tickets: list[dict[str, Any]] = self.query("tickets.mine")["tickets"]
        return tickets

    def bookings(self) -> list[dict[str, Any]]:
        """The newest 50 bookings of this person."""
        bookings: list[dict[str, Any]] = self.query("bookings.mine", {})["bookings"]
        return bookings

    def _result(self, procedure: str, send: Callable[[], httpx.Response]) -> Any:
        try:
            reply = send()
        except httpx.TransportError as error:
            raise ApiRefusedError(procedure, str(error) or type(error).__name__, "UNREACHABLE") from error
        try:
            document = reply.json()
        except ValueError:
            raise ApiRefusedError(procedure, f"status {reply.status_code}: {reply.text[:200]}", "NOT_TRPC") from None
        if "error" in document:
            error_ = document["error"]
            raise ApiRefusedError(procedure, error_["message"], error_["data"]["code"])
        return document["result"]["data"]
