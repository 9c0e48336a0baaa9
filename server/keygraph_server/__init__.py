"""The server process: settings, application, playground, command line."""
