"""Least privilege, the other half: what no role may do, asked of the emulator with each role's own credentials.

Who mails as whom is not among it: the emulator asks for ``ses:SendEmail`` on every identity at once, and knows no
sender; the infra tests hold that statement.
"""

from collections.abc import Callable, Iterator
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError
from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape

from local.emulator import ACCOUNT, Clients
from tests.fixtures.platform import RunningPlatform
from tests.fixtures.role_policies import SESSION_NAME, clients_of_role

pytestmark = pytest.mark.e2e

API, WORKER, TICKETS = "minitickets-dev-api", "minitickets-dev-worker", "minitickets-dev-tickets"
EXECUTION = "minitickets-dev-api-execution"
ALLOWED_ON_TICKETS = {API: {"Query"}, TICKETS: {"GetItem", "PutItem", "UpdateItem"}}
ALLOWED_ON_PROCESSED_JOBS = {WORKER: {"GetItem", "PutItem"}}


class Roles:
    """Clients of each role, made once."""

    def __init__(self, platform: RunningPlatform) -> None:
        self._platform = platform
        self._clients: dict[str, Clients] = {}

    def __call__(self, role: str) -> Clients:
        if role not in self._clients:
            endpoint = self._platform.session.endpoint
            self._clients[role] = clients_of_role(endpoint, self._platform.aws, role)
        return self._clients[role]

    def close(self) -> None:
        for clients in self._clients.values():
            clients.close()


@pytest.fixture(scope="module")
def roles(platform: RunningPlatform) -> Iterator[Roles]:
    roles = Roles(platform)
    yield roles
    roles.close()


def assert_refused(role: str, action: str, call: Callable[..., object], /, **arguments: Any) -> None:
    """The call is refused, to this role, for want of this action."""
    with pytest.raises(ClientError) as refused:
        call(**arguments)
    text = str(refused.value)
    assert f":assumed-role/{role}/{SESSION_NAME} is not authorized to perform: {action} " in text, text


_DYNAMODB = botocore.session.get_session().get_service_model("dynamodb")


def input_of(operation: str) -> StructureShape:
    shape = _DYNAMODB.operation_model(operation).input_shape
    assert shape is not None, f"{operation} takes no input"
    return shape


# Every call that names one table, from the SDK's own description of the service: those that come later too.
TABLE_CALLS = sorted(
    name
    for name in _DYNAMODB.operation_names
    if _DYNAMODB.operation_model(name).input_shape is not None and "TableName" in input_of(name).members
)


def least_input(shape: Shape, table: str, name: str = "") -> Any:
    """The smallest value of a shape that the SDK sends: permissions are asked before anything else."""
    if name == "TableName":
        return table
    if isinstance(shape, StructureShape):
        wanted = {*shape.required_members, *({"TableName"} & shape.members.keys())}
        return {member: least_input(shape.members[member], table, member) for member in wanted}
    if isinstance(shape, ListShape):
        return [least_input(shape.member, table)]
    if isinstance(shape, MapShape):
        return {}
    if isinstance(shape, StringShape):
        return next(iter(shape.enum), "x" * shape.metadata.get("min", 1))
    return {"boolean": False, "timestamp": 0}.get(shape.type_name, 1)


def call_table(clients: Clients, operation: str, table: str) -> object:
    method: Callable[..., object] = getattr(clients("dynamodb"), botocore.xform_name(operation))
    return method(**least_input(input_of(operation), table))


@pytest.mark.parametrize("role", [API, WORKER, TICKETS])
@pytest.mark.parametrize("operation", TABLE_CALLS)
def test_a_role_may_call_on_a_table_what_its_statement_lists_and_nothing_else(
    platform: RunningPlatform, roles: Roles, role: str, operation: str
) -> None:
    tables = {"ticketsTable": ALLOWED_ON_TICKETS, "processedJobsTable": ALLOWED_ON_PROCESSED_JOBS}
    for output, allowed in tables.items():
        if operation not in allowed.get(role, ()):
            asked = {"clients": roles(role), "operation": operation, "table": platform.outputs[output]}
            assert_refused(role, f"dynamodb:{operation}", call_table, **asked)


def test_the_calls_on_a_table_include_all_that_could_read_or_change_an_item() -> None:
    assert {"DeleteItem", "DeleteTable", "GetItem", "PutItem", "Query", "Scan", "UpdateItem"} <= set(TABLE_CALLS)


@pytest.mark.parametrize("role", [API, WORKER, TICKETS])
@pytest.mark.parametrize(
    ("output", "key"),
    [
        ("ticketsTable", {"userId": {"S": "u"}, "ticketId": {"S": "t"}}),
        ("processedJobsTable", {"jobKey": {"S": "j"}}),
    ],
)
def test_no_role_may_read_or_write_items_in_batches_transactions_or_statements(
    platform: RunningPlatform, roles: Roles, role: str, output: str, key: dict[str, Any]
) -> None:
    table, dynamodb = platform.outputs[output], roles(role)("dynamodb")

    def refused(action: str, call: Callable[..., object], **arguments: Any) -> None:
        assert_refused(role, f"dynamodb:{action}", call, **arguments)

    refused("BatchGetItem", dynamodb.batch_get_item, RequestItems={table: {"Keys": [key]}})
    refused("BatchWriteItem", dynamodb.batch_write_item, RequestItems={table: [{"DeleteRequest": {"Key": key}}]})
    # A transaction is authorised by the action of each of its items.
    delete = {"Delete": {"TableName": table, "Key": key}}
    refused("DeleteItem", dynamodb.transact_write_items, TransactItems=[delete])
    # AWS would say dynamodb:PartiQLSelect.
    refused("ExecuteStatement", dynamodb.execute_statement, Statement=f'SELECT * FROM "{table}"')  # noqa: S608 - names of ours, no input


def test_the_roles_are_let_in_where_they_belong_so_a_refusal_is_not_for_a_broken_session(
    platform: RunningPlatform, roles: Roles
) -> None:
    tickets, jobs = platform.outputs["ticketsTable"], platform.outputs["processedJobsTable"]
    query = {"KeyConditionExpression": "userId = :u", "ExpressionAttributeValues": {":u": {"S": "nobody"}}}
    ticket_key = {"userId": {"S": "nobody"}, "ticketId": {"S": "none"}}

    assert roles(API)("dynamodb").query(TableName=tickets, **query)["Count"] == 0
    assert "Item" not in roles(WORKER)("dynamodb").get_item(TableName=jobs, Key={"jobKey": {"S": "none"}})
    assert "Item" not in roles(TICKETS)("dynamodb").get_item(TableName=tickets, Key=ticket_key)


def test_the_api_may_not_query_the_index_of_events(platform: RunningPlatform, roles: Roles) -> None:
    query = {
        "TableName": platform.outputs["ticketsTable"],
        "IndexName": "by-event-date",
        "KeyConditionExpression": "eventDate = :d",
        "ExpressionAttributeValues": {":d": {"S": "2026-12-31"}},
    }
    assert platform.aws("dynamodb").query(**query)["Count"] >= 0, "the index is there"

    assert_refused(API, "dynamodb:Query", roles(API)("dynamodb").query, **query)


@pytest.mark.parametrize(
    ("role", "output"),
    [
        *((WORKER, name) for name in ("ticketsQueueUrl", "ticketsDlqUrl", "jobsDlqUrl")),
        *((TICKETS, name) for name in ("jobsQueueUrl", "jobsDlqUrl", "ticketsDlqUrl")),
        *((API, name) for name in ("jobsQueueUrl", "ticketsQueueUrl", "jobsDlqUrl", "ticketsDlqUrl")),
    ],
)
def test_a_function_may_not_touch_the_other_ones_queue_nor_anybody_the_dead_letters(
    platform: RunningPlatform, roles: Roles, role: str, output: str
) -> None:
    sqs, queue = roles(role)("sqs"), {"QueueUrl": platform.outputs[output]}
    receipt = {"ReceiptHandle": "r"}

    assert_refused(role, "sqs:ReceiveMessage", sqs.receive_message, **queue)
    assert_refused(role, "sqs:DeleteMessage", sqs.delete_message, **queue, **receipt)
    assert_refused(
        role, "sqs:ChangeMessageVisibility", sqs.change_message_visibility, **queue, **receipt, VisibilityTimeout=0
    )
    assert_refused(role, "sqs:GetQueueAttributes", sqs.get_queue_attributes, **queue, AttributeNames=["All"])
    assert_refused(role, "sqs:SendMessage", sqs.send_message, **queue, MessageBody="{}")
    assert_refused(role, "sqs:PurgeQueue", sqs.purge_queue, **queue)


@pytest.mark.parametrize(("role", "output"), [(WORKER, "jobsQueueUrl"), (TICKETS, "ticketsQueueUrl")])
def test_a_function_may_not_put_anything_into_its_own_queue_or_empty_it(
    platform: RunningPlatform, roles: Roles, role: str, output: str
) -> None:
    sqs, url = roles(role)("sqs"), platform.outputs[output]

    assert_refused(role, "sqs:SendMessage", sqs.send_message, QueueUrl=url, MessageBody="{}")
    assert_refused(role, "sqs:PurgeQueue", sqs.purge_queue, QueueUrl=url)


@pytest.fixture
def other_topic(platform: RunningPlatform) -> Iterator[str]:
    sns = platform.aws("sns")
    arn: str = sns.create_topic(Name="minitickets-dev-other")["TopicArn"]
    yield arn
    sns.delete_topic(TopicArn=arn)


def test_the_api_publishes_to_its_topic_only_and_the_functions_to_none(
    platform: RunningPlatform, roles: Roles, other_topic: str
) -> None:
    own = platform.outputs["topicArn"]
    entries = [{"Id": "1", "Message": "{}"}]
    for role, topic in ((API, other_topic), (WORKER, own), (TICKETS, own)):
        sns = roles(role)("sns")
        assert_refused(role, "sns:Publish", sns.publish, TopicArn=topic, Message="{}")
        assert_refused(role, "sns:PublishBatch", sns.publish_batch, TopicArn=topic, PublishBatchRequestEntries=entries)


def test_the_api_may_not_subscribe_anybody_to_its_topic(platform: RunningPlatform, roles: Roles) -> None:
    spy = {"TopicArn": platform.outputs["topicArn"], "Protocol": "email", "Endpoint": "spy@example.org"}

    assert_refused(API, "sns:Subscribe", roles(API)("sns").subscribe, **spy)


@pytest.mark.parametrize("encryption", [{}, {"ServerSideEncryption": "aws:kms"}], ids=["none", "kms"])
@pytest.mark.parametrize("prefix", ["posters", "poster-uploads"])
def test_the_api_writes_posters_encrypted_with_aes256_or_not_at_all(
    platform: RunningPlatform, roles: Roles, prefix: str, encryption: dict[str, str]
) -> None:
    target = {"Bucket": platform.outputs["assetsBucket"], "Key": f"{prefix}/permission-test"}
    put = roles(API)("s3").put_object

    assert_refused(API, "s3:PutObject", put, **target, Body=b"x", **encryption)

    put(**target, Body=b"x", ServerSideEncryption="AES256")
    platform.aws("s3").delete_object(**target)


PREFIXES = ("elsewhere", "tickets", "posters", "poster-uploads")


@pytest.fixture
def an_object_in_each_place(platform: RunningPlatform) -> Iterator[dict[str, dict[str, str]]]:
    """Arguments that name an existing object, by prefix."""
    s3, bucket = platform.aws("s3"), platform.outputs["assetsBucket"]
    objects = {prefix: {"Bucket": bucket, "Key": f"{prefix}/permission-test"} for prefix in PREFIXES}
    for target in objects.values():
        s3.put_object(**target, Body=b"x")
    yield objects
    for target in objects.values():
        s3.delete_object(**target)


@pytest.mark.parametrize(
    ("role", "readable", "writable"),
    [
        (API, {"tickets", "posters", "poster-uploads"}, {"posters", "poster-uploads"}),
        (WORKER, set[str](), set[str]()),
        (TICKETS, set[str](), {"tickets"}),
    ],
)
def test_a_role_reads_and_writes_below_its_prefixes_only_and_deletes_and_lists_nothing(
    roles: Roles,
    an_object_in_each_place: dict[str, dict[str, str]],
    role: str,
    readable: set[str],
    writable: set[str],
) -> None:
    s3 = roles(role)("s3")
    for prefix, target in an_object_in_each_place.items():
        if prefix in readable:
            s3.get_object(**target)["Body"].close()
        else:
            assert_refused(role, "s3:GetObject", s3.get_object, **target)
        new = {**target, "Body": b"y", "ServerSideEncryption": "AES256"}
        if prefix in writable:
            s3.put_object(**new)
        else:
            assert_refused(role, "s3:PutObject", s3.put_object, **new)
        assert_refused(role, "s3:DeleteObject", s3.delete_object, **target)
        assert_refused(role, "s3:ListBucket", s3.list_objects_v2, Bucket=target["Bucket"], Prefix=prefix)


def test_only_the_tickets_function_reads_the_signing_secret_and_it_reads_no_other(
    platform: RunningPlatform, roles: Roles
) -> None:
    signing = platform.outputs["signingSecretArn"]
    listed = [secret["ARN"] for secret in platform.aws("secretsmanager").list_secrets()["SecretList"]]
    others = [arn for arn in listed if arn != signing]
    assert len(others) == 2, "the database's and the cache's"

    for role, secrets in ((API, listed), (WORKER, listed), (TICKETS, others)):
        for arn in secrets:
            read = roles(role)("secretsmanager").get_secret_value
            assert_refused(role, "secretsmanager:GetSecretValue", read, SecretId=arn)
    assert "keys" in roles(TICKETS)("secretsmanager").get_secret_value(SecretId=signing)["SecretString"]


def test_the_execution_role_reads_the_injected_secrets_only_and_does_nothing_of_the_apis(
    platform: RunningPlatform, roles: Roles
) -> None:
    clients, outputs = roles(EXECUTION), platform.outputs
    read = clients("secretsmanager").get_secret_value

    assert_refused(EXECUTION, "secretsmanager:GetSecretValue", read, SecretId=outputs["signingSecretArn"])
    assert_refused(EXECUTION, "sns:Publish", clients("sns").publish, TopicArn=outputs["topicArn"], Message="{}")
    query = {"clients": clients, "operation": "Query", "table": outputs["ticketsTable"]}
    assert_refused(EXECUTION, "dynamodb:Query", call_table, **query)


@pytest.mark.parametrize(("role", "other"), [(WORKER, TICKETS), (TICKETS, WORKER)])
def test_a_function_writes_into_its_own_log_group_only_and_makes_none(roles: Roles, role: str, other: str) -> None:
    logs = roles(role)("logs")
    foreign = {"logGroupName": f"/aws/lambda/{other}", "logStreamName": "permission-test"}

    assert_refused(role, "logs:CreateLogGroup", logs.create_log_group, logGroupName=f"/aws/lambda/{role}-2")
    assert_refused(role, "logs:CreateLogStream", logs.create_log_stream, **foreign)


@pytest.mark.parametrize("role", [API, WORKER, TICKETS])
def test_no_role_may_become_another_call_a_function_or_change_what_it_may_do(roles: Roles, role: str) -> None:
    clients = roles(role)
    policy = {"RoleName": role, "PolicyName": "more", "PolicyDocument": "{}"}
    other = f"arn:aws:iam::{ACCOUNT}:role/{API if role != API else WORKER}"

    assert_refused(role, "iam:PutRolePolicy", clients("iam").put_role_policy, **policy)
    assert_refused(role, "lambda:InvokeFunction", clients("lambda").invoke, FunctionName=WORKER)
    assert_refused(role, "sts:AssumeRole", clients("sts").assume_role, RoleArn=other, RoleSessionName=SESSION_NAME)
