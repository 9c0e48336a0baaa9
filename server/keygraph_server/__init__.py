"""The process: settings, the application, the playground, the command line."""
