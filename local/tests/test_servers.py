"""A PostgreSQL of our own, wherever its folder is and whatever ended the one before."""

from pathlib import Path

import pytest

from local.processes import free_port, start
from local.servers.postgres import PostgresServer

pytestmark = pytest.mark.integration

_TEMPORARY = Path("/tmp")  # noqa: S108 - where the server puts a socket whose own folder is too deep


def _server(folder: Path) -> PostgresServer:
    return PostgresServer(folder, port=free_port(), log=folder.parent / "server.log")


def test_a_folder_deeper_than_a_sockets_address_serves_and_leaves_nothing_outside(tmp_path: Path) -> None:
    server = _server(tmp_path / "/".join(["a-folder-that-is-deep"] * 6))
    server.prepare()
    child = server.start()
    try:
        assert server.run_sql("select 1") == "1"
        outside = set(_TEMPORARY.glob("minitickets-*/.s.PGSQL.*"))
        assert [path for path in outside if path.name == f".s.PGSQL.{server.port}"]
    finally:
        server.stop()

    assert child.exit_code() == 0
    assert not list(_TEMPORARY.glob(f"minitickets-*/.s.PGSQL.{server.port}"))


def test_a_cluster_copied_from_a_template_serves_like_one_that_was_made(tmp_path: Path) -> None:
    template = tmp_path / "cache" / "postgres"
    first, second = _server(tmp_path / "first"), _server(tmp_path / "second")
    first.prepare(template=template)
    made_at = template.stat().st_mtime_ns
    second.prepare(template=template)

    second.start()
    try:
        assert second.run_sql("show server_encoding") == "UTF8"
    finally:
        second.stop()
    assert template.stat().st_mtime_ns == made_at
    assert [entry.name for entry in template.parent.iterdir()] == ["postgres"]


def test_a_lock_whose_process_number_is_somebody_elses_now_does_not_keep_it_down(tmp_path: Path) -> None:
    server = _server(tmp_path / "db")
    server.prepare()
    server.start()
    server.run_sql("create table kept ()")
    server.stop()
    other = start("other", ["sleep", "60"], env={"PATH": "/usr/bin:/bin"}, log=tmp_path / "log")
    lines = [str(other.pid), str(server.data), "0", str(server.port), str(server.folder), "127.0.0.1", "0 0", "ready"]
    (server.data / "postmaster.pid").write_text("\n".join(lines) + "\n")

    try:
        server.start()
        assert server.run_sql("select count(*) from kept") == "0"
    finally:
        server.stop()
        other.stop()
