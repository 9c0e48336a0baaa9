"""The settings: from `KEYGRAPH_…` variables in the environment and from command options."""

from __future__ import annotations

import os
from enum import Enum
from typing import Any

from pydantic import ConfigDict, SecretStr, ValidationError

from keygraph_server.errors import SettingsError, value_problem
from keygraph_server.settings.access import AccessSettings
from keygraph_server.settings.answers import AnswerSettings
from keygraph_server.settings.browsers import BrowserSettings
from keygraph_server.settings.connections import ConnectionSettings
from keygraph_server.settings.documents import DocumentSettings
from keygraph_server.settings.exposure import ExposureSettings
from keygraph_server.settings.limits import LimitSettings
from keygraph_server.settings.logging import LoggingSettings
from keygraph_server.settings.metrics import MetricsSettings
from keygraph_server.settings.requests import RequestSettings
from keygraph_server.settings.serving import ServingSettings

PREFIX = "KEYGRAPH_"
_PATIENT_SECONDS = 60.0


class Settings(
    MetricsSettings,
    LoggingSettings,
    AccessSettings,
    AnswerSettings,
    RequestSettings,
    LimitSettings,
    DocumentSettings,
    BrowserSettings,
    ExposureSettings,
    ConnectionSettings,
    ServingSettings,
):
    """All settings, those of the last base first."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def patient(self) -> Settings:
        """The settings of a command that sends many requests, and waits while DynamoDB throttles."""
        return self.model_copy(update={"deadline": max(self.deadline, _PATIENT_SECONDS)})

    def environment(self) -> dict[str, str]:
        """These settings as environment variables, for another process."""
        found: dict[str, str] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            match value:
                case None:
                    continue
                case SecretStr():
                    value = value.get_secret_value()
                case Enum():
                    value = value.value
            found[environment_name(name)] = str(value)
        return found


def environment_name(setting: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + setting.upper()


def read_settings(**given: object) -> Settings:
    """Reads the settings: first the given ones that are not None, then the environment, then the defaults.

    An empty variable counts as unset. Raises SettingsError, which names the first invalid setting and its source.
    """
    options = {name: value for name, value in given.items() if value is not None}
    variables = {name: os.environ.get(environment_name(name), "") for name in Settings.model_fields}
    found: dict[str, Any] = {name: text for name, text in variables.items() if text} | options
    try:
        return Settings(**found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0]).lower()
        source = f"--{name.replace('_', '-')}" if name in options else environment_name(name)
        problem = f"{source} cannot be used: {value_problem(first)}"
        raise SettingsError(problem, "See docs/settings.md for valid values") from None
