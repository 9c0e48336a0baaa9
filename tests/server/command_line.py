"""Running a command of `keygraph` in this process, and what it prints."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from keygraph_server.cli import app


def run(*words: object, given: bytes | str | None = None) -> Result:
    """The outcome of `keygraph` with these words, and what is given on standard input.

    An error that the command line does not expect is raised.
    """
    result = CliRunner().invoke(app, [str(word) for word in words], input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def done(*words: object) -> str:
    """What a command of these words prints that ends without an error."""
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*words: object) -> str:
    """What a command of these words says that prints nothing else, and ends with an error."""
    result = run(*words)
    name, _, told = result.stderr.partition(": ")
    assert (result.exit_code, result.stdout, name) == (1, "", "keygraph"), result.output
    return told


def shown_lines(text: str) -> list[str]:
    """The lines that say something."""
    return [line.rstrip() for line in text.splitlines() if line.strip(" ─")]
