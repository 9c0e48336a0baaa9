"""The settings: from `KEYGRAPH_…` variables in the environment and from command options.

A module for each subject has its settings; `settings` reads them all.
"""

from keygraph_server.settings.access import Auth
from keygraph_server.settings.exposure import Environment
from keygraph_server.settings.logging import LogFormat, LoggingSettings, LogLevel
from keygraph_server.settings.serving import DATA_FOLDER, SECRET_CHARACTERS
from keygraph_server.settings.settings import PREFIX, Settings, environment_name, read_settings

__all__ = [
    "DATA_FOLDER",
    "PREFIX",
    "SECRET_CHARACTERS",
    "Auth",
    "Environment",
    "LogFormat",
    "LogLevel",
    "LoggingSettings",
    "Settings",
    "environment_name",
    "read_settings",
]
