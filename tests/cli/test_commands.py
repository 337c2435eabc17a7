"""Command line: what each command does and prints, and its error messages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tertulia import __version__, cli
from tertulia.app import new_id, now_ms
from tertulia.core.errors import CannotStart, NotFound, TertuliaError, WeakPassword
from tertulia.core.jobs import IndexFile
from tertulia.core.sessions import ClientInfo
from tertulia.core.users import ServerRole
from tertulia.store import jobs, sessions, users
from tertulia.store.database import Database, Tx

LONG = "a long enough password"
BROWSER = ClientInfo("Firefox", "Linux", "127.0.0.1")


class Terminal:
    """Runs commands with a new data folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._runner = CliRunner()

    def type(self, *words: str, answers: str = "", **environ: str) -> Result:
        variables = {"TERTULIA_HOME": str(self.home), "COLUMNS": "200", "NO_COLOR": "1"} | environ
        return self._runner.invoke(cli.app, list(words), input=answers, env=variables)

    def account(self, email: str) -> users.StoredCredentials | None:
        db = Database.open(f"sqlite:///{self.home / 'tertulia.db'}", clock=now_ms, new_id=new_id)
        try:
            return db.read_now(lambda tx: users.find_credentials(tx, email))
        finally:
            db.close()


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "home")


def test_version_prints_the_version(terminal):
    result = terminal.type("version")
    assert (result.exit_code, result.stdout.strip()) == (0, __version__)


def test_without_a_command_the_help_is_printed(terminal):
    result = terminal.type()
    assert "One conversation, many models" in result.output
    for command in ("serve", "doctor", "version", "inventory", "models", "user"):
        assert re.search(rf"\b{command}\b", result.output)


def every_command() -> list[tuple[str, ...]]:
    own = [(info.name,) for info in cli.app.registered_commands]
    inner = [
        (group.name, info.name)
        for group in cli.app.registered_groups
        for info in group.typer_instance.registered_commands
    ]
    return [tuple(filter(None, words)) for words in (*own, *inner)]


@pytest.mark.parametrize("words", every_command(), ids=" ".join)
def test_the_help_of_every_command_is_a_sentence(terminal, words):
    result = terminal.type(*words, "--help")
    assert result.exit_code == 0
    about = [line.strip() for line in result.stdout.splitlines() if line.strip() and "Usage:" not in line][0]
    assert about.endswith(".")


def test_doctor_reports_good_results(terminal):
    result = terminal.type("doctor", TERTULIA_ENDPOINTS=OWN)
    lines = {line.split()[1]: line for line in result.stdout.splitlines()}
    assert lines["program"].startswith("good")
    assert str(terminal.home) in lines["data"]
    assert "SQLite" in lines["database"]
    assert lines["models"].startswith("good")


def test_doctor_reports_where_vectors_are_compared_and_whether_clocks_agree(
    terminal, postgres_url, plain_postgres_url
):
    in_memory = terminal.type("doctor", TERTULIA_ENDPOINTS=OWN)
    assert re.search("^good +vectors +compared in the server's memory$", in_memory.stdout, re.MULTILINE)
    extended = terminal.type("doctor", TERTULIA_ENDPOINTS=OWN, TERTULIA_DATABASE_URL=postgres_url)
    assert "compared in the database by pgvector" in extended.stdout
    assert re.search("^good +clock +agrees with the database's$", extended.stdout, re.MULTILINE)
    plain = terminal.type("doctor", TERTULIA_ENDPOINTS=OWN, TERTULIA_DATABASE_URL=plain_postgres_url)
    assert "run CREATE EXTENSION vector in this database" in plain.stdout


def test_doctor_says_what_to_do_when_no_model_is_available(terminal):
    result = terminal.type("doctor", OPENAI_API_KEY="", ANTHROPIC_API_KEY="", GOOGLE_API_KEY="")
    assert result.exit_code == 1
    assert "none can answer. Run `tertulia models pull smollm2` or set a provider's key." in result.stdout


def test_doctor_reports_jobs_that_failed_for_good(terminal):
    assert re.search("^good +jobs +none failed for good$", terminal.type("doctor").stdout, re.MULTILINE)
    db = Database.open(f"sqlite:///{terminal.home / 'tertulia.db'}", clock=now_ms, new_id=new_id)
    db.write_now(give_up)
    db.close()
    output = terminal.type("doctor").stdout
    last = re.escape('index_file {"file_id":"F"}: No room.')
    assert re.search(f"^fail +jobs +1 failed for good, the last of them {last}", output, re.MULTILINE)


def give_up(tx: Tx) -> None:
    jobs.enqueue(tx, IndexFile("F"))
    for _ in range(jobs.ATTEMPTS):
        job = jobs.claim(tx, "this one", lease_ms=0)
        assert job is not None
        jobs.fail(tx, job.id, "No room.")
        jobs.run_now(tx, "index_file")


def test_doctor_names_the_process_that_has_the_database_open(terminal):
    terminal.type("user", "add", "ada@example.org", "--name", "Ada", "--password", LONG)
    held = Database.open(f"sqlite:///{terminal.home / 'tertulia.db'}", clock=now_ms, new_id=new_id)
    try:
        result = terminal.type("doctor")
    finally:
        held.close()
    assert result.exit_code == 1
    assert "Another Tertulia (process " in result.stdout


def test_user_add_adds_an_account(terminal):
    result = terminal.type("user", "add", "Ada@Example.org", "--name", "Ada", "--password", LONG)
    assert (result.exit_code, result.stdout.strip()) == (0, "Added Ada <ada@example.org> as member.")
    account = terminal.account("ada@example.org")
    assert account is not None
    assert account.user.role is ServerRole.MEMBER
    assert LONG not in account.password_hash


def test_user_add_with_admin_adds_an_administrator(terminal):
    terminal.type("user", "add", "ada@example.org", "--name", "Ada", "--password", LONG, "--admin")
    account = terminal.account("ada@example.org")
    assert account is not None
    assert account.user.role is ServerRole.ADMIN


def test_the_password_prompt_asks_twice_and_never_prints_the_password(terminal):
    answers = f"Ada\n{LONG}\n{LONG}\n"
    result = terminal.type("user", "add", "ada@example.org", answers=answers)
    assert result.exit_code == 0
    assert LONG not in result.output
    assert terminal.account("ada@example.org") is not None


def test_a_short_password_is_refused_and_adds_no_account(terminal):
    result = terminal.type("user", "add", "ada@example.org", "--name", "Ada", "--password", "short")
    assert isinstance(result.exception, WeakPassword)
    assert not (terminal.home / "tertulia.db").exists()


def test_a_second_account_with_the_same_address_is_refused(terminal):
    for _ in range(2):
        result = terminal.type("user", "add", "ada@example.org", "--name", "Ada", "--password", LONG)
    assert isinstance(result.exception, TertuliaError)
    assert result.exception.message == "There is already an account with this e-mail address."


def test_reset_password_sets_the_password_and_ends_all_sessions(terminal):
    terminal.type("user", "add", "ada@example.org", "--name", "Ada", "--password", LONG)
    before = terminal.account("ada@example.org")
    assert before is not None
    db = Database.open(f"sqlite:///{terminal.home / 'tertulia.db'}", clock=now_ms, new_id=new_id)
    db.write_now(lambda tx: sessions.add(tx, before.user.id, "a token's hash", BROWSER))
    db.close()
    result = terminal.type("user", "reset-password", "ada@example.org", "--password", f"{LONG}, and new")
    assert result.stdout.strip() == "ada@example.org has a new password and is signed out everywhere."
    after = terminal.account("ada@example.org")
    assert after is not None
    assert after.password_hash != before.password_hash
    db = Database.open(f"sqlite:///{terminal.home / 'tertulia.db'}", clock=now_ms, new_id=new_id)
    assert db.read_now(lambda tx: sessions.find_signed_in(tx, "a token's hash")) is None
    db.close()


def test_reset_password_of_a_missing_account_is_refused(terminal):
    result = terminal.type("user", "reset-password", "nobody@example.org", "--password", LONG)
    assert isinstance(result.exception, NotFound)
    assert result.exception.message == "There is no account nobody@example.org."


def test_inventory_lists_every_route_with_its_access_class(terminal):
    result = terminal.type("inventory")
    routes = {(route["method"], route["path"]): route["access"] for route in json.loads(result.stdout)}
    assert routes["POST", "/api/turn"] == "signed_in"
    assert routes["GET", "/api/health"] == "anyone"
    assert routes["GET", "/api/users"] == "admin"


def test_openapi_prints_the_document(terminal):
    result = terminal.type("openapi")
    assert "/api/turn" in json.loads(result.stdout)["paths"]


def test_models_list_shows_the_models_that_can_be_downloaded(terminal):
    result = terminal.type("models", "list")
    assert result.exit_code == 0
    assert re.search(r"^smollm2\s+no\s", result.stdout, re.MULTILINE)


def test_pulling_an_unknown_model_is_refused(terminal):
    result = terminal.type("models", "pull", "nonesuch")
    assert isinstance(result.exception, TertuliaError)
    assert "nonesuch" in result.exception.message


def test_an_error_message_prints_brackets_as_they_were_typed(terminal, capsys):
    result = terminal.type("models", "pull", "[/bold]")
    assert isinstance(result.exception, NotFound)
    cli.print_error(result.exception)
    assert capsys.readouterr().err.startswith("not_found There is no model called '[/bold]' to fetch.")


def test_a_data_folder_may_have_brackets_in_its_name(tmp_path):
    result = Terminal(tmp_path / "[/home]").type("doctor", TERTULIA_ENDPOINTS=OWN)
    assert f"{tmp_path}/[/home]" in result.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("serve", "--port", "0"),
        ("user", "add", "ada@example.org", "--name", "Ada", "--password", LONG),
        ("index", "rebuild"),
        ("models", "pull", "smollm2"),
    ],
    ids=" ".join,
)
def test_a_data_folder_that_cannot_be_created_is_named_in_the_error(tmp_path, words):
    home = tmp_path / "a file, and no folder"
    home.touch()
    result = Terminal(home).type(*words)
    assert isinstance(result.exception, CannotStart)
    assert str(home) in result.exception.message
    assert "TERTULIA_HOME" in result.exception.message


def test_an_invalid_port_is_refused_before_anything_is_opened(terminal):
    result = terminal.type("serve", "--port", "65536")
    assert result.exit_code == 2
    assert not terminal.home.exists()


def test_index_rebuild_of_a_missing_project_is_refused(terminal):
    result = terminal.type("index", "rebuild", "--project", "nonesuch")
    assert isinstance(result.exception, NotFound)
    assert result.exception.message == "There is no project with the id 'nonesuch'."
    assert terminal.type("index", "rebuild").stdout.startswith("0 jobs wait for the server.")


OWN = json.dumps([{"name": "voices", "base_url": "http://127.0.0.1:9/v1", "models": ["alpha"]}])
