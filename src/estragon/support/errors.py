"""The exception meant for the user, and the exit codes of every command."""

OK, CHECK_FAILED, BAD_INPUT, INTERRUPTED, READER_GONE = 0, 1, 2, 130, 141
"""Exit codes; 130 and 141 are what a shell reports for SIGINT and SIGPIPE."""


class UserError(Exception):
    """Bad input or an impossible request: the command line prints it as one line and exits 2."""
