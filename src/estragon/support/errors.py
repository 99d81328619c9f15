"""The one exception whose message is meant for the person at the keyboard."""


class UserError(Exception):
    """Bad input or an impossible request: the command line prints it as one line and exits 2."""
