"""The stage file: what it sets, and how a line of it is changed."""

from pathlib import Path

import pytest

from ops.refusal import Refusal
from ops.stage_file import StageFile, find_stage_file
from ops.tests.stages import STAGE_FILE, make_project

pytestmark = pytest.mark.unit


def _file(folder: Path, content: str) -> StageFile:
    path = folder / "Pulumi.dev.yaml"
    path.write_bytes(content.encode())
    return StageFile(stage="dev", path=path)


def test_a_switch_changes_its_own_line_and_no_other_byte(project: Path) -> None:
    file = find_stage_file(project, "dev")
    file.write(file.changed({"dataEnabled": False}))
    expected = STAGE_FILE.replace("dataEnabled: true  # its", "dataEnabled: false  # its")
    assert file.path.read_text() == expected
    file.write(file.changed({"dataEnabled": True}))
    assert file.path.read_text() == STAGE_FILE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('config:\n  minitickets:dataEnabled: "true" # x\n', 'config:\n  minitickets:dataEnabled: "false" # x\n'),
        ("config:\n    'minitickets:dataEnabled': true\n", "config:\n    'minitickets:dataEnabled': false\n"),
        ("config:\r\n  minitickets:dataEnabled: true\r\n", "config:\r\n  minitickets:dataEnabled: false\r\n"),
        ("config:\n  minitickets:dataEnabled: true", "config:\n  minitickets:dataEnabled: false"),
        (
            "config:\n  a:b: 1\n  # minitickets:dataEnabled: true\nencryptionsalt: v1:x\n",
            (
                "config:\n  a:b: 1\n  # minitickets:dataEnabled: true\n  minitickets:dataEnabled: false\n"
                "encryptionsalt: v1:x\n"
            ),
        ),
        ("# new\n", "# new\nconfig:\n  minitickets:dataEnabled: false\n"),
        ("", "config:\n  minitickets:dataEnabled: false\n"),
        (
            "encryptionsalt: v1:x\nconfig:\n  a:b: 1\n\n",
            "encryptionsalt: v1:x\nconfig:\n  a:b: 1\n  minitickets:dataEnabled: false\n\n",
        ),
    ],
    ids=["quoted", "quoted key", "windows", "no last newline", "commented out", "comment only", "empty", "salt first"],
)
def test_quotes_comments_indents_and_line_ends_stay_as_they_were(tmp_path: Path, before: str, after: str) -> None:
    assert _file(tmp_path, before).changed({"dataEnabled": False}) == after.encode()


def test_an_image_is_named_renamed_and_taken_out_again(project: Path) -> None:
    file = find_stage_file(project, "dev")
    one, two = (
        f"123456789012.dkr.ecr.eu-west-1.amazonaws.com/minitickets-dev-api@sha256:{digit * 64}" for digit in "ab"
    )
    for reference in (one, two):
        file.write(file.changed({"image": reference}))
        assert file.settings().image == reference
    assert file.path.read_text().count("image") == 1
    file.write(file.changed({"image": None}))
    assert file.path.read_text() == STAGE_FILE


@pytest.mark.parametrize(
    "content",
    [
        "config: {minitickets:dataEnabled: true}\n",
        "config:\n  minitickets:dataEnabled:\n    true\n",
        "config: &all\n  minitickets:dataEnabled: true\n",
        "config:\n  ? minitickets:dataEnabled\n  : true\n",
    ],
    ids=["inline", "value on its own line", "anchor", "explicit key"],
)
def test_a_layout_that_cannot_be_changed_by_line_is_refused_with_what_to_set(tmp_path: Path, content: str) -> None:
    file = _file(tmp_path, content)
    with pytest.raises(Refusal, match=r"set minitickets:dataEnabled to false in it by hand"):
        file.changed({"dataEnabled": False})
    assert file.read() == content.encode()


def test_a_setting_given_twice_is_refused(tmp_path: Path) -> None:
    file = _file(tmp_path, "config:\n  minitickets:dataEnabled: true\n  minitickets:dataEnabled: false\n")
    with pytest.raises(Refusal, match=r"line 2 is not right \(minitickets:dataEnabled is given twice"):
        file.changed({"dataEnabled": False})


@pytest.mark.parametrize("stage", ["", "Dev", "dev-", "-dev", "de--v", "1dev", "../dev", "dev x", "d" * 21, "dev\n"])
def test_a_name_that_no_stage_can_have_is_refused(tmp_path: Path, stage: str) -> None:
    with pytest.raises(Refusal, match="no name for a stage"):
        find_stage_file(make_project(tmp_path / "project"), stage)


def test_a_stage_without_a_file_is_refused_naming_those_that_have_one(project: Path) -> None:
    with pytest.raises(Refusal, match=r"No Pulumi\.prod\.yaml here.*there are: dev"):
        find_stage_file(project, "prod")


def test_a_broken_file_is_refused_with_its_line(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    (project / "Pulumi.dev.yaml").write_text("config:\n  a: [\n")
    with pytest.raises(Refusal, match=r"Pulumi\.dev\.yaml, line 3"):
        find_stage_file(project, "dev")


def test_a_wrong_value_is_refused_with_its_key_its_value_and_what_is_allowed(tmp_path: Path) -> None:
    settings = _file(
        tmp_path, "config:\n  minitickets:dataEnabled: perhaps\n  minitickets:keepSnapshots: -1\n"
    ).settings()
    with pytest.raises(Refusal, match="minitickets:dataEnabled is 'perhaps': it must be true or false"):
        _ = settings.keeps_data
    with pytest.raises(Refusal, match="minitickets:keepSnapshots is -1: it must be a whole number"):
        settings.count("keepSnapshots", default=5)


def test_what_the_file_leaves_out_comes_from_the_project(project: Path) -> None:
    file = find_stage_file(project, "dev")
    assert not file.settings().flag("deletionProtection", default=True)
    file.write(file.changed({"deletionProtection": None}))
    assert file.settings().flag("deletionProtection", default=False)


def test_a_draft_has_the_other_content_and_is_gone_afterwards(project: Path) -> None:
    file = find_stage_file(project, "dev")
    with file.draft(b"config: {}\n") as draft:
        assert draft.read_bytes() == b"config: {}\n"
        assert file.path.read_text() == STAGE_FILE
    assert not draft.exists()


def test_writing_keeps_the_file_s_mode_and_leaves_nothing_beside_it(project: Path) -> None:
    file = find_stage_file(project, "dev")
    file.path.chmod(0o640)
    before = sorted(project.iterdir())
    file.write(b"config: {}\n")
    assert file.path.stat().st_mode & 0o777 == 0o640
    assert sorted(project.iterdir()) == before
