"""TLS to PostgreSQL and Valkey, against servers that speak it: Debian's, because the wheels' do not."""

import asyncio
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from local.processes import Child, accepts_connections, free_port, start, wait_until
from local.servers.postgres import unprivileged
from minitickets_api.database import connect
from minitickets_api.services.cache import Cache

pytestmark = pytest.mark.integration

ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
POSTGRES = max(Path("/usr/lib/postgresql").glob("*/bin/postgres"), default=None)
REDIS = shutil.which("redis-server")
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl on PATH to make certificates")
needs_postgres = pytest.mark.skipif(
    POSTGRES is None, reason="no PostgreSQL with TLS here: `apt-get install postgresql` brings one"
)
needs_redis = pytest.mark.skipif(
    REDIS is None, reason="no redis-server with TLS here: `apt-get install redis-server` brings one"
)


@dataclass(frozen=True, kw_only=True)
class Certificates:
    """An authority of our own, a certificate of ``localhost`` by it, and an authority that signed nothing."""

    authority: Path
    stranger: Path
    certificate: Path
    key: Path


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("certificates")
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    for name in ("authority", "stranger"):
        files = ("-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.pem")
        openssl("req", "-x509", *new_key, *files, "-subj", f"/CN={name}")
    signed_by = ("-CA", f"{folder}/authority.pem", "-CAkey", f"{folder}/authority.key")
    files = ("-keyout", f"{folder}/server.key", "-out", f"{folder}/server.pem")
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    openssl("req", "-x509", *new_key, *signed_by, *files, *names, "-addext", "basicConstraints=CA:FALSE")
    return Certificates(
        authority=folder / "authority.pem",
        stranger=folder / "stranger.pem",
        certificate=folder / "server.pem",
        key=folder / "server.key",
    )


@pytest.fixture(scope="module")
def postgres_port(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A PostgreSQL that takes nobody without TLS, as RDS does with ``rds.force_ssl``; user and password ``owner``."""
    assert POSTGRES is not None
    folder = tmp_path_factory.mktemp("tls-postgres")
    data, password = folder / "data", folder / "password"
    password.write_text("owner")
    subprocess.run(
        [
            *unprivileged(signal.SIGINT),
            str(POSTGRES.with_name("initdb")),
            f"--pgdata={data}",
            "--username=owner",
            f"--pwfile={password}",
            "--auth=scram-sha-256",
            "--no-sync",
        ],
        check=True,
        capture_output=True,
        env=ENVIRONMENT,
        timeout=60,
    )
    (data / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 scram-sha-256\n")
    port = free_port()
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": "",
        "ssl": "on",
        "ssl_cert_file": str(certificates.certificate),
        "ssl_key_file": str(certificates.key),
    }
    child = start(
        "tls-postgres",
        [*unprivileged(signal.SIGINT), str(POSTGRES), f"-D{data}", *(f"-c{k}={v}" for k, v in settings.items())],
        env=ENVIRONMENT,
        log=folder / "server.log",
        stop_signal=signal.SIGINT,
    )
    # It takes connections before it serves them, and tells whoever comes so early that it is starting up.
    log = folder / "server.log"
    yield from until_done(child, port, is_ready=lambda: "ready to accept connections" in log.read_text())


@pytest.fixture(scope="module")
def redis_port(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A Redis that answers by TLS alone; its password is ``token``."""
    folder = tmp_path_factory.mktemp("tls-redis")
    port = free_port()
    (folder / "redis.conf").write_text(
        f"bind 127.0.0.1\nport 0\ntls-port {port}\ntls-auth-clients no\nrequirepass token\nsave ''\n"
        f"tls-cert-file {certificates.certificate}\ntls-key-file {certificates.key}\n"
        f"tls-ca-cert-file {certificates.authority}\n"
    )
    child = start(
        "tls-redis",
        [str(REDIS), str(folder / "redis.conf")],
        env=ENVIRONMENT,
        log=folder / "server.log",
        cwd=folder,
    )
    yield from until_done(child, port, is_ready=lambda: accepts_connections(port))


def until_done(child: Child, port: int, *, is_ready: Callable[[], bool]) -> Iterator[int]:
    wait_until(f"{child.name} is ready", is_ready, seconds=30, alive=child)
    yield port
    child.stop()


def answers(port: int, *, host: str = "localhost", sslmode: str = "verify-full") -> bool:
    async def ask() -> bool:
        database = await connect(host=host, port=port, name="postgres", user="owner", password="owner", sslmode=sslmode)
        try:
            if not await database.is_reachable(seconds=10):
                return False
            async with database.pool.acquire() as connection:
                return bool(await connection.fetchval("select ssl from pg_stat_ssl where pid = pg_backend_pid()"))
        finally:
            await database.close()

    return asyncio.run(ask())


def keeps(port: int, *, host: str = "localhost", tls: bool = True) -> bool:
    async def ask() -> bool:
        cache = Cache(host=host, port=port, token="token", tls=tls)
        await cache.warm()
        try:
            await cache.put("key", b"value", milliseconds=60_000)
            return await cache.get("key") == b"value"
        finally:
            await cache.close()

    return asyncio.run(ask())


@needs_openssl
@needs_postgres
class TestPostgres:
    def test_a_certificate_of_a_known_authority_for_this_host_is_trusted(
        self, certificates: Certificates, postgres_port: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))

        assert answers(postgres_port)

    def test_a_certificate_of_an_unknown_authority_is_not_talked_to(
        self, certificates: Certificates, postgres_port: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificates.stranger))

        assert not answers(postgres_port)

    def test_a_certificate_for_another_host_is_not_talked_to(
        self, certificates: Certificates, postgres_port: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))

        assert not answers(postgres_port, host="127.0.0.1")

    def test_a_server_that_forces_tls_does_not_answer_without(self, postgres_port: int) -> None:
        assert not answers(postgres_port, sslmode="disable")


@needs_openssl
@needs_redis
class TestValkey:
    def test_a_certificate_of_a_known_authority_for_this_host_is_trusted(
        self, certificates: Certificates, redis_port: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))

        assert keeps(redis_port)

    def test_a_certificate_of_an_unknown_authority_is_not_talked_to(
        self, certificates: Certificates, redis_port: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificates.stranger))

        assert not keeps(redis_port)

    def test_a_certificate_for_another_host_is_not_talked_to(
        self, certificates: Certificates, redis_port: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))

        assert not keeps(redis_port, host="127.0.0.1")

    def test_without_tls_nothing_is_kept(self, redis_port: int) -> None:
        assert not keeps(redis_port, tls=False)
