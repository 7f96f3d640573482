"""Policy documents on their way into the emulator: widened where this machine must, and said aloud."""

from local.handlers.handler import PlatformServices
from local.widenings import Kind, widen


def as_this_machine_needs(platform: PlatformServices, document: str, *, kind: Kind, owner: str) -> str:
    """The document to store, ``""`` if nothing is left of it; each loosening is said with ``owner`` and its reason."""
    widened = widen(document, kind)
    for widening in widened.applied:
        platform.say(f"loosened: {owner}: {widening.name} ({widening.reason})")
    return widened.document
