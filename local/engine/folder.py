"""Where the engine's side of a stage lies, below the platform's own state."""

from pathlib import Path


class EngineFolder:
    """Paths in ``<state folder>/engine``."""

    def __init__(self, state: Path) -> None:
        self.path = state / "engine"

    @property
    def project(self) -> Path:
        """The copy of the stage's configuration, with links to the program and its artifacts."""
        return self.path / "project"

    @property
    def backend(self) -> Path:
        """The engine's state, and its history."""
        return self.path / "backend"

    @property
    def home(self) -> Path:
        """What the CLI keeps for itself."""
        return self.path / "home"

    @property
    def programs(self) -> Path:
        """The first folder on the deploy commands' PATH."""
        return self.path / "bin"

    @property
    def ports(self) -> Path:
        """Where the provider and the language host serve, once they do."""
        return self.path / "ports.json"

    @property
    def operations(self) -> Path:
        """What the engine had the platform do."""
        return self.path / "operations.jsonl"

    @property
    def restore_from(self) -> Path:
        """The RESTORE_FROM of the run that goes on, for the program: its own process was started before."""
        return self.path / "restore-from"
