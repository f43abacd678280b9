"""A real client of the language server: pygls's own, with the server as its child process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import BaseLanguageClient

SECONDS = 60


class Editor:
    """Opens and edits documents, and waits for what the server says of them."""

    def __init__(self, client: BaseLanguageClient) -> None:
        self.client = client
        self.published: list[types.PublishDiagnosticsParams] = []
        self.messages: list[str] = []
        self._versions: dict[str, int] = {}

        def take(params: types.PublishDiagnosticsParams) -> None:
            self.published.append(params)

        def shown(params: types.ShowMessageParams) -> None:
            self.messages.append(params.message)

        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(take)
        client.feature(types.WINDOW_SHOW_MESSAGE)(shown)
        client.feature(types.WINDOW_LOG_MESSAGE)(shown)

    def open(self, uri: str, text: str) -> None:
        self._versions[uri] = 1
        item = types.TextDocumentItem(uri, "python", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def edit(self, uri: str, text: str) -> None:
        self._versions[uri] += 1
        which = types.VersionedTextDocumentIdentifier(self._versions[uri], uri)
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(which, [change]))

    async def diagnostics(self, uri: str, version: int | None = None) -> list[types.Diagnostic]:
        """What is published of the document's latest version, or of the one that is given."""
        wanted = version or self._versions[uri]
        return await until(lambda: self._of(uri, wanted))

    def _of(self, uri: str, version: int) -> list[types.Diagnostic] | None:
        for params in reversed(self.published):
            if params.uri == uri and params.version == version:
                return list(params.diagnostics)
        return None

    async def actions(self, uri: str, line: int, only: list[str] | None = None) -> list[Any]:
        place = types.Position(line, 0)  # Helix asks where the cursor is, before the code
        return (
            await self.client.text_document_code_action_async(
                types.CodeActionParams(
                    types.TextDocumentIdentifier(uri),
                    types.Range(place, place),
                    types.CodeActionContext([], only),
                )
            )
            or []
        )

    async def hover(self, uri: str, line: int, character: int) -> types.Hover | None:
        where = types.Position(line, character)
        params = types.HoverParams(types.TextDocumentIdentifier(uri), where)
        return await self.client.text_document_hover_async(params)


async def until(ask: Callable[[], Any]) -> Any:
    """The first answer that is not None."""
    for _ in range(SECONDS * 50):
        if (answer := ask()) is not None:
            return answer
        await asyncio.sleep(0.02)
    raise AssertionError("the server said nothing")


def session(
    use: Callable[[Editor], Awaitable[None]],
    folder: Path,
    options: Any = None,
    encodings: list[Any] | None = None,
    *,
    shut_down: bool = True,
) -> int:
    """Start a server, use it, end it; its exit status."""

    async def run() -> int:
        client = BaseLanguageClient("test", "1")
        editor = Editor(client)
        command = ["-m", "rlproof", "lsp", "--stdio"]
        await client.start_io(sys.executable, *command, cwd=folder)
        process = client._server
        await asyncio.wait_for(client.initialize_async(_hello(folder, options, encodings)), SECONDS)
        client.initialized(types.InitializedParams())
        await use(editor)
        if shut_down:
            await asyncio.wait_for(client.shutdown_async(None), SECONDS)
        client.exit(None)
        return await asyncio.wait_for(process.wait(), SECONDS)

    return asyncio.run(run())


def _hello(folder: Path, options: Any, encodings: list[Any] | None) -> types.InitializeParams:
    general = types.GeneralClientCapabilities(position_encodings=encodings)
    return types.InitializeParams(
        capabilities=types.ClientCapabilities(general=general),
        process_id=None,
        root_uri=folder.as_uri(),
        workspace_folders=[types.WorkspaceFolder(folder.as_uri(), "project")],
        initialization_options=options,
    )


def applied(text: str, edits: list[types.TextEdit], units: str = "utf-16-le") -> str:
    """A text after edits, with characters counted as the protocol does: written once more here."""
    size = {"utf-16-le": 2, "utf-8": 1}[units]
    starts = [0]
    raw = text.encode(units)
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode(units)))

    def offset(place: types.Position) -> int:
        return starts[place.line] + place.character * size

    spans = [(offset(one.range.start), offset(one.range.end), one.new_text) for one in edits]
    for first, last, new in sorted(spans, reverse=True):
        raw = raw[:first] + new.encode(units) + raw[last:]
    return raw.decode(units)
