"""Fixtures that more than one tier of tests uses; each module of tests/fixtures keeps one kind."""

pytest_plugins = [
    "tests.fixtures.emulator",
    "tests.fixtures.platform",
    "tests.fixtures.handled_stage",
    "tests.fixtures.servers",
    "tests.fixtures.migrated_database",
    "tests.fixtures.running_api",
    "tests.fixtures.pulumi_cli",
]
