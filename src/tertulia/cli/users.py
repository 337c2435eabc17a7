"""`tertulia user`: adds accounts and resets passwords directly in the database."""

from __future__ import annotations

from typing import Annotated

import typer
from argon2 import PasswordHasher

from tertulia.cli import local_database
from tertulia.core.errors import NotFound
from tertulia.core.users import ServerRole, check_password, clean_email, clean_name
from tertulia.store import users
from tertulia.store.database import Tx

app = typer.Typer(help="Add accounts and reset passwords.", no_args_is_help=True)

Password = Annotated[
    str,
    typer.Option(
        prompt=True, confirmation_prompt=True, hide_input=True, help="Without it, the command asks for it."
    ),
]


@app.command("add")
def add(
    email: Annotated[str, typer.Argument(help="The e-mail address to sign in with.")],
    name: Annotated[str, typer.Option(prompt=True, help="The person's name.")],
    password: Password,
    admin: Annotated[bool, typer.Option("--admin", help="Make the account an administrator.")] = False,
) -> None:
    """Add an account."""
    check_password(password)
    role = ServerRole.ADMIN if admin else ServerRole.MEMBER
    cleaned, hashed = (clean_name(name), clean_email(email)), PasswordHasher().hash(password)
    with local_database.connect() as db:
        user = db.write_now(lambda tx: users.add(tx, *cleaned, hashed, role))
    typer.echo(f"Added {user.name} <{user.email}> as {user.role}.")


@app.command("reset-password")
def reset_password(
    email: Annotated[str, typer.Argument(help="The account's e-mail address.")], password: Password
) -> None:
    """Set a new password and sign the account out everywhere."""
    check_password(password)
    address, hashed = clean_email(email), PasswordHasher().hash(password)

    def reset(tx: Tx) -> None:
        credentials = users.find_credentials(tx, address)
        if credentials is None:
            raise NotFound(f"There is no account {address}.")
        users.set_password(tx, credentials.user.id, hashed)

    with local_database.connect() as db:
        db.write_now(reset)
    typer.echo(f"{address} has a new password and is signed out everywhere.")
