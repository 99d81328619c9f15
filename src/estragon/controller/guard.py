"""Who may talk to the page: only a browser with this user's token, from this very page.

The token comes from a file that only the user can read. It is posted once and then is a cookie; it
is never part of an address or of a command line, which others could read.
"""

import hmac
import html
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HOSTS = {"127.0.0.1", "localhost", "::1"}
"""With any port: the page may be looked at through a tunnel."""
LOGIN = "/login"
COOKIE = "estragon_token"
LONGEST_POST = 4096
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    # NiceGUI's page has inline scripts; nothing may come from, or go to, another host.
    (
        b"content-security-policy",
        b"default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; frame-ancestors 'none'",
    ),
]
PAGE = """<!doctype html><meta charset="utf-8"><title>Estragon</title>
<meta name="viewport" content="width=device-width">
<style>body {{ font: 16px sans-serif; margin: 4rem auto; max-width: 30rem }}</style>
<h1>Estragon</h1>{text}"""
FORM = """<p>{what}</p><form method="post" action="/login">
<input name="token" type="password" size="30" autocomplete="off" autofocus> <button>Open</button>
</form><p>The token is in the file that <code>estragon ui</code> names when it starts.</p>"""


class Guard:
    """ASGI middleware before everything else: pages, files and the WebSocket."""

    def __init__(self, app: App, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is allowed, answer the rest."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {
            key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]
        }
        is_login = scope["type"] == "http" and scope["path"] == LOGIN
        if not self._is_ours(headers, allow_file=is_login):
            await _answer(scope, send, 403, "<p>Refused: another Host or Origin.</p>")
        elif is_login and scope["method"] == "POST":
            await self._log_in(scope, receive, send)
        elif not self._has_token(headers):
            await _answer(scope, send, 401, FORM.format(what="Enter your token."))
        else:
            await self._app(scope, receive, _with_headers(send))

    def _is_ours(self, headers: dict[str, str], *, allow_file: bool) -> bool:
        host = headers.get("host", "")
        if _name(f"//{host}") not in HOSTS:
            return False  # a foreign name that leads here: DNS rebinding
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        return origin == f"http://{host}" or (allow_file and origin == "null")

    def _has_token(self, headers: dict[str, str]) -> bool:
        # By hand: other programs on this host may have set cookies that a parser stumbles over.
        cookies = [part.strip().partition("=") for part in headers.get("cookie", "").split(";")]
        return any(name == COOKIE and self._fits(value) for name, _, value in cookies)

    def _fits(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._token.encode())

    async def _log_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more and len(body) <= LONGEST_POST:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        fields = parse_qs(body.decode("latin-1"))
        if not self._fits("".join(fields.get("token", []))):
            await _answer(scope, send, 401, FORM.format(what="That is not the token."))
            return
        cookie = f"{COOKIE}={self._token}; HttpOnly; SameSite=Strict; Path=/; Max-Age=31536000"
        # Not a redirect: that would still count as coming from where the form was.
        go = '<meta http-equiv="refresh" content="0; url=/"><p><a href="/">Open</a></p>'
        await _answer(scope, send, 200, go, [(b"set-cookie", cookie.encode())])


def opening_page(url: str, token: str) -> str:
    """A file that a browser opens to log in, for a folder that only the user can read."""
    return PAGE.format(
        text=f'<form method="post" action="{html.escape(url)}{LOGIN}">'
        f'<input type="hidden" name="token" value="{html.escape(token)}">'
        "<button>Open the controller</button></form><script>document.forms[0].submit()</script>"
    )


async def _answer(
    scope: Scope, send: Send, status: int, text: str, headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    body = PAGE.format(text=text).encode()
    start = [(b"content-type", b"text/html; charset=utf-8"), (b"cache-control", b"no-store")]
    start += [(b"content-length", str(len(body)).encode()), *headers, *HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *HEADERS]
        await send(message)

    return sending


def _name(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
