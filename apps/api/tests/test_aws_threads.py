"""How long a request may wait for AWS."""

import asyncio
import threading

import pytest

from minitickets_api.aws import Aws
from minitickets_api.refusals import Code, Refusal

pytestmark = pytest.mark.unit


def test_when_aws_hangs_few_wait_and_the_others_are_told_at_once() -> None:
    async def scene() -> None:
        aws = Aws(region="us-east-1")
        answers = threading.Event()
        asked = [asyncio.create_task(aws.run(lambda: answers.wait(10))) for _ in range(200)]
        try:
            over, waiting = await asyncio.wait(asked, timeout=0.2)

            refusals = [task.exception() for task in over]
            assert len(waiting) == 64
            assert all(isinstance(told, Refusal) and told.code is Code.SERVICE_UNAVAILABLE for told in refusals)
        finally:
            answers.set()
        assert await asyncio.gather(*waiting) == [True] * 64
        assert await aws.run(lambda: "again") == "again"
        aws.close()

    asyncio.run(scene())


def test_what_is_only_signed_does_not_wait_for_an_aws_that_hangs() -> None:
    async def scene() -> None:
        aws = Aws(region="us-east-1")
        answers = threading.Event()
        asked = [asyncio.create_task(aws.run(lambda: answers.wait(10))) for _ in range(64)]
        try:
            await asyncio.sleep(0)  # they are under way
            assert await asyncio.wait_for(aws.sign(lambda: "a signature"), 5) == "a signature"
        finally:
            answers.set()
            await asyncio.gather(*asked)
        aws.close()

    asyncio.run(scene())
