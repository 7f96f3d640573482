"""A role is granted on the whole platform by the operator's command, as a task under the deployed definition."""

import os
import subprocess

import pytest

from local.session import python_command
from tests.fixtures.platform import Customer, RunningPlatform

pytestmark = pytest.mark.e2e


def grant(platform: RunningPlatform, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        python_command("local", "grant", "--folder", str(platform.folder.path), *options),
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def is_organiser(customer: Customer) -> bool:
    return bool(customer.visitor.query("auth.me")["user"]["isOrganiser"])


def test_a_signed_in_customer_becomes_an_organiser_and_a_customer_again(platform: RunningPlatform) -> None:
    customer, other = platform.register(), platform.register()
    assert not is_organiser(customer)

    granted = grant(platform, "--email", customer.email)
    assert (granted.returncode, granted.stderr) == (0, "")
    assert f"{customer.email} is an organiser in dev" in granted.stdout
    assert is_organiser(customer)
    assert not is_organiser(other)

    again = grant(platform, "--email", customer.email)
    assert again.returncode == 0
    assert ", as before" in again.stdout

    revoked = grant(platform, "--email", customer.email, "--revoke")
    assert revoked.returncode == 0
    assert not is_organiser(customer)


def test_an_address_that_nobody_registered_is_refused_with_what_to_do(platform: RunningPlatform) -> None:
    refused = grant(platform, "--email", "nobody@example.org")
    assert refused.returncode == 2
    assert refused.stderr == (
        "error: Nobody has registered as nobody@example.org in dev, so nothing was changed: "
        "have them register first, then try again\n"
    )
