"""The settings: from `KEYGRAPH_…` variables in the environment and from command options.

A module for each subject has its settings: what is served (`serving`), what a client may do with its connections
(`connections`), what an operation may ask for (`limits`), how requests are sent (`requests`) and answers (`answers`),
what is logged (`logging`) and measured (`metrics`), what pages in browsers may do (`browsers`), what a client may see
(`exposure`), which documents are executed (`documents`). `settings` reads them all.
"""

from keygraph_server.settings.exposure import Environment
from keygraph_server.settings.logging import LogFormat, LoggingSettings, LogLevel
from keygraph_server.settings.serving import DATA_FOLDER, SECRET_CHARACTERS
from keygraph_server.settings.settings import PREFIX, Settings, environment_name, read_settings

__all__ = [
    "DATA_FOLDER",
    "PREFIX",
    "SECRET_CHARACTERS",
    "Environment",
    "LogFormat",
    "LogLevel",
    "LoggingSettings",
    "Settings",
    "environment_name",
    "read_settings",
]
