"""Settings: name, environment variable, default and help of each; read once at the start."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from platformdirs import user_data_dir

from tertulia.core.errors import CannotStart
from tertulia.core.files import FileLimits
from tertulia.providers import embeddings
from tertulia.providers.embeddings import EmbeddingEndpoint

LOOPBACK = ("127.0.0.1", "::1", "localhost")
LAST_PORT = 65_535
LARGEST_MIB = 1 << 30
LONGEST_TIMEOUT_S = 1_800


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    variable: str
    default: str
    help: str


SETTINGS = (
    Setting("home", "TERTULIA_HOME", "", "Where data and models live. Empty: the user's data directory."),
    Setting("host", "TERTULIA_HOST", "127.0.0.1", "The address to listen on."),
    Setting("port", "TERTULIA_PORT", "8000", "The port to listen on."),
    Setting(
        "database_url", "TERTULIA_DATABASE_URL", "", "postgresql://… for PostgreSQL. Empty: SQLite in home."
    ),
    Setting(
        "public_url",
        "TERTULIA_PUBLIC_URL",
        "",
        "The address that people use, if a proxy is in front of the server.",
    ),
    Setting(
        "allowed_hosts",
        "TERTULIA_ALLOWED_HOSTS",
        "",
        "More host names that this server answers to, comma separated.",
    ),
    Setting("trusted_proxies", "TERTULIA_TRUSTED_PROXIES", "", "Proxies whose X-Forwarded-For is trusted."),
    Setting("instance_name", "TERTULIA_INSTANCE_NAME", "Tertulia", "The server's name on the sign-in page."),
    Setting(
        "upload_limit_mib",
        "TERTULIA_UPLOAD_LIMIT_MIB",
        "100",
        "The largest file that can be uploaded, in MiB.",
    ),
    Setting(
        "quota_mib", "TERTULIA_QUOTA_MIB", "10240", "How much space each person's files may take up, in MiB."
    ),
    Setting(
        "embeddings",
        embeddings.VARIABLE,
        "",
        "An OpenAI-compatible endpoint that computes the vectors of texts, as JSON. "
        "Empty: a model on this machine computes them.",
    ),
    Setting(
        "answer_timeout_s",
        "TERTULIA_ANSWER_TIMEOUT_S",
        "",
        "How many seconds a provider may take until the first word of a reply, 0 for no limit. "
        "Empty: 300, and no limit for a server on this machine.",
    ),
    Setting("log_level", "TERTULIA_LOG_LEVEL", "info", "debug, info, warning or error."),
)


@dataclass(frozen=True, slots=True)
class Settings:
    home: Path
    host: str
    port: int
    database_url: str
    public_url: str
    allowed_hosts: tuple[str, ...]
    trusted_proxies: tuple[str, ...]
    instance_name: str
    log_level: str
    file_limits: FileLimits = field(default_factory=FileLimits)
    embeddings: EmbeddingEndpoint | None = None
    answer_timeout_s: float | None = None

    @property
    def is_private(self) -> bool:
        """True if only this machine can reach the server: it listens on loopback and has no public name."""
        return self.host in LOOPBACK and not self.public_url and not self.allowed_hosts

    @property
    def is_secure(self) -> bool:
        """True if people reach this server over TLS."""
        return self.public_url.startswith("https://")


def read(environ: Mapping[str, str]) -> Settings:
    values = {setting.name: environ.get(setting.variable, setting.default).strip() for setting in SETTINGS}
    home = Path(values["home"] or user_data_dir("tertulia", appauthor=False)).expanduser()
    return Settings(
        home=home,
        host=values["host"],
        port=_port(values["port"]),
        database_url=values["database_url"] or f"sqlite:///{home / 'tertulia.db'}",
        public_url=values["public_url"].rstrip("/"),
        allowed_hosts=_list(values["allowed_hosts"]),
        trusted_proxies=_list(values["trusted_proxies"]),
        instance_name=values["instance_name"],
        log_level=values["log_level"].lower(),
        file_limits=FileLimits(
            upload_bytes=_mebibytes("TERTULIA_UPLOAD_LIMIT_MIB", values["upload_limit_mib"]),
            quota_bytes=_mebibytes("TERTULIA_QUOTA_MIB", values["quota_mib"]),
        ),
        embeddings=embeddings.read(values["embeddings"]),
        answer_timeout_s=_answer_timeout_s(values["answer_timeout_s"]),
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > LAST_PORT:
        raise CannotStart(f"TERTULIA_PORT is {text!r}; it must be a number from 0 to {LAST_PORT}.")
    return int(text)


def _mebibytes(variable: str, text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= LARGEST_MIB:
        raise CannotStart(
            f"{variable} is {text!r}; it must be a whole number of MiB from 1 to {LARGEST_MIB:,}."
        )
    return int(text) << 20


def _answer_timeout_s(text: str) -> float | None:
    if not text:
        return None
    if not text.isdecimal() or int(text) > LONGEST_TIMEOUT_S:
        raise CannotStart(
            f"TERTULIA_ANSWER_TIMEOUT_S is {text!r}; it must be a whole number of seconds from 0 (no limit) "
            f"to {LONGEST_TIMEOUT_S:,}."
        )
    return float(text) or math.inf


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def make_home(home: Path) -> None:
    """Creates the data folder if it is missing, readable by this user only."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise CannotStart(
            f"The data folder {home} cannot be created ({error.strerror}). Set TERTULIA_HOME to another."
        ) from None
    if not os.access(home, os.W_OK):
        raise CannotStart(
            f"The data folder {home} cannot be written to. Set TERTULIA_HOME to another folder."
        )
