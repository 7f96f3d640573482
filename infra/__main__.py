"""MiniTickets on AWS, top to bottom: what there is, what feeds what, and what a switch takes away."""

import pulumi

from src.account import look_up_account
from src.artifacts import find_artifacts
from src.compute.api import create_api
from src.compute.certificate import require_certificate_here
from src.compute.logs import create_api_logs
from src.compute.registry import create_image_repository
from src.compute.running_service import require_no_service
from src.data.backups import create_backup_plan, create_backup_vault
from src.data.cache import create_cache
from src.data.database import create_database, create_database_logs
from src.data.database_memory import create_database_memory, remember_database_up
from src.email.sender import create_sender
from src.jobs.booking_events import create_booking_events
from src.jobs.processed_jobs_table import create_processed_jobs_table
from src.jobs.worker import create_worker
from src.naming import stage_name
from src.network.network_acl import narrow_default_network_acl
from src.network.security_groups import create_security_groups
from src.network.vpc import create_network
from src.observability.alarm_topic import create_alarm_topic
from src.observability.api_alarms import create_door_alarms, create_outbox_alarms, create_task_alarm
from src.observability.database_alarms import create_backup_alarm, create_database_alarms
from src.observability.event_alarms import create_event_alarms
from src.observability.outbox_metrics import create_outbox_metrics
from src.observability.rotation_reminder import create_rotation_reminder
from src.secret_policy import require_administrator
from src.settings import load_settings
from src.tickets.lambda_ import create_ticket_issuer
from src.tickets.storage import create_ticket_storage

settings = load_settings()
artifacts = find_artifacts(settings.build.artifacts_dir)
name = stage_name(settings.stage)
account = look_up_account()
site, queues, keeping = settings.site, settings.queues, settings.keeping

# First, since each may have to stop the run: a certificate from elsewhere, secrets that would lock us out, a service
# that no image is known for, and what the stage remembers of its database.
require_certificate_here(site.certificate_arn, account=account)
require_administrator(account, administrators=keeping.secret_administrators)
if settings.switches.compute_enabled and settings.api.image is None:
    require_no_service(name)
memory = create_database_memory(name, is_wanted=settings.switches.data_enabled, restore_from=settings.restore_from)

# Always on: none of this has an idle fee to speak of.
sender = create_sender(settings.mail)
events = create_booking_events(name, account_id=account.id, max_receive_count=queues.max_receive_count)
processed_jobs = create_processed_jobs_table(name, keeping=keeping)
storage = create_ticket_storage(name, account=account, public_url=site.public_url, keeping=keeping)
worker = create_worker(
    name,
    stage=settings.stage,
    account_id=account.id,
    queue=events.jobs.queue,
    processed_jobs=processed_jobs,
    sender=sender,
    code=artifacts.worker,
    queues=queues,
    keeping=keeping,
    public_url=site.public_url,
)
issuer = create_ticket_issuer(
    name,
    stage=settings.stage,
    account_id=account.id,
    queue=events.tickets.queue,
    storage=storage,
    code=artifacts.tickets,
    queues=queues,
    keeping=keeping,
)
network = create_network(name, region=account.region)
narrow_default_network_acl(name, vpc=network.vpc)
security_groups = create_security_groups(name, vpc_id=network.vpc.id, site=site)
repository = create_image_repository(name, force_destroy=keeping.force_destroy)
api_logs = create_api_logs(name, retention_days=keeping.log_retention_days)
database_logs = create_database_logs(name, retention_days=keeping.log_retention_days)
backups = create_backup_vault(name, account=account, keeping=keeping)
alarms = create_alarm_topic(name, account=account, email=settings.alarms.alarm_email, own_key=settings.alarms.alarm_key)
outbox_metrics = create_outbox_metrics(name, logs=api_logs)
if settings.alarms.secret_rotation_reminder_days > 0:
    create_rotation_reminder(
        name,
        account=account,
        topic=alarms,
        topic_has_own_key=settings.alarms.alarm_key,
        days=settings.alarms.secret_rotation_reminder_days,
    )
create_event_alarms(name, events=events, worker=worker.function, tickets=issuer.function, topic=alarms)

pulumi.export("stage", settings.stage)
pulumi.export("topicArn", events.topic.arn)
pulumi.export("jobsQueueUrl", events.jobs.queue.url)
pulumi.export("jobsDlqUrl", events.jobs.dead_letters.url)
pulumi.export("ticketsQueueUrl", events.tickets.queue.url)
pulumi.export("ticketsDlqUrl", events.tickets.dead_letters.url)
pulumi.export("processedJobsTable", processed_jobs.name)
pulumi.export("ticketsTable", storage.table.name)
pulumi.export("assetsBucket", storage.bucket.bucket)
pulumi.export("signingSecretArn", storage.signing_secret.arn)
pulumi.export("sender", sender.address)
pulumi.export("repositoryUrl", repository.repository_url)
pulumi.export("alarmTopicArn", alarms.arn)

# Everything below costs money while idle.
if settings.switches.data_enabled:
    database = create_database(
        name,
        network=network,
        security_group=security_groups.data,
        memory=memory,
        logs=database_logs,
        sizes=settings.data,
        deletion_protection=keeping.deletion_protection,
    )
    cache = create_cache(
        name,
        account=account,
        network=network,
        security_group=security_groups.data,
        sizes=settings.data,
        secret_administrators=keeping.secret_administrators,
    )
    create_database_alarms(
        name,
        instance=database.instance,
        storage_gib=settings.data.database_storage_gib,
        connections=settings.alarms.database_connections_alarm,
        topic=alarms,
    )
    if settings.data.backup_plan_days > 0:
        create_backup_plan(name, into=backups, instance=database.instance, days=settings.data.backup_plan_days)
        create_backup_alarm(name, vault=backups.vault, topic=alarms)
    pulumi.export("databaseIdentifier", database.instance.identifier)

    # Inside, because the API cannot run without its database; the settings refuse to ask for that.
    if settings.switches.compute_enabled:
        api = create_api(
            name,
            stage=settings.stage,
            account=account,
            network=network,
            security_groups=security_groups,
            repository=repository,
            logs=api_logs,
            topic=events.topic,
            storage=storage,
            database=database,
            cache=cache,
            sessions_void_before=memory.life.rewound_at,
            site=site,
            size=settings.api,
            consumers=[worker.trigger, issuer.trigger],
        )
        create_outbox_alarms(name, metrics=outbox_metrics, topic=alarms)
        create_door_alarms(name, load_balancer=api.load_balancer, topic=alarms)
        pulumi.export("apiUrl", api.load_balancer.url)
        pulumi.export("apiCluster", api.cluster.name)
        if api.running is not None:
            create_task_alarm(name, load_balancer=api.load_balancer, service=api.running.service, topic=alarms)
            pulumi.export("apiTaskDefinition", api.running.task.arn)
else:
    remember_database_up(memory, instance=None)
