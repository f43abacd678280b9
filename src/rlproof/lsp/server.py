"""The server: documents that are open, what is known of each, and the answers to requests.

Handlers run in the event loop and only look at what is known. Checks run in one thread, searches
for repairs in another, so that a long search holds nothing up. What they find is taken only while
it is about the text that the document still has.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

import rlproof
from rlproof.errors import ConfigError
from rlproof.lsp.actions import FIX_ALL, Edits, actions
from rlproof.lsp.checking import Checked, checked, repaired
from rlproof.lsp.diagnostics import diagnostics
from rlproof.lsp.hover import hover
from rlproof.lsp.settings import Settings, settings
from rlproof.lsp.text import Text
from rlproof.lsp.worker import Worker
from rlproof.read.source import is_notebook

_SCHEMES = ("file", "untitled")


@dataclass
class Document:
    """One open document."""

    uri: str
    path: str
    text: str
    version: int
    revision: int = 0
    """Counts what would make an earlier result stale: changes of the text or of the settings."""
    timer: asyncio.TimerHandle | None = field(default=None, repr=False)
    known: Checked | None = None
    """What is known of this very text."""


class Service:
    """What the handlers share."""

    def __init__(self) -> None:
        # whole texts: incremental changes count lines, and not every library as editors do
        sync = types.TextDocumentSyncKind.Full
        self.server = LanguageServer("rlproof", rlproof.__version__, text_document_sync_kind=sync)
        self.was_shut_down = False
        self._settings = Settings()
        self._documents: dict[str, Document] = {}
        self._checks, self._repairs = Worker("checks"), Worker("repairs")
        kinds = [types.CodeActionKind.QuickFix, FIX_ALL]
        handlers: dict[str, tuple[Callable[..., Any], Any]] = {
            types.INITIALIZE: (self.initialize, None),
            types.SHUTDOWN: (self.shut_down, None),
            types.TEXT_DOCUMENT_DID_OPEN: (self.opened, None),
            types.TEXT_DOCUMENT_DID_CHANGE: (self.changed, None),
            types.TEXT_DOCUMENT_DID_SAVE: (self.saved, types.SaveOptions(include_text=False)),
            types.TEXT_DOCUMENT_DID_CLOSE: (self.closed, None),
            types.WORKSPACE_DID_CHANGE_CONFIGURATION: (self.configured, None),
            types.TEXT_DOCUMENT_HOVER: (self.hover, None),
            types.TEXT_DOCUMENT_CODE_ACTION: (self.actions, types.CodeActionOptions(kinds)),
        }
        for method, (handler, options) in handlers.items():
            self.server.feature(method, options)(partial(handler))  # methods take no attributes

    def initialize(self, params: types.InitializeParams) -> None:
        """Take the settings of `initializationOptions`."""
        self._set(params.initialization_options)

    def shut_down(self, *_: Any) -> None:
        """Remember that the client said so: an exit without it is a failure."""
        self.was_shut_down = True

    def configured(self, params: types.DidChangeConfigurationParams) -> None:
        """Take changed settings and check everything anew."""
        given = params.settings
        if isinstance(given, dict) and "rlproof" in given:  # others may be sent along, or nothing
            self._set(given)
            for document in self._documents.values():
                self._schedule(document, 0)

    def _set(self, given: Any) -> None:
        try:
            self._settings = settings(given)
        except ConfigError as error:
            message = types.ShowMessageParams(types.MessageType.Error, str(error))
            self.server.window_show_message(message)

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        """Check a document that is opened."""
        item = params.text_document
        path = to_fs_path(item.uri) or urlsplit(item.uri).path
        if urlsplit(item.uri).scheme in _SCHEMES and path and not is_notebook(path):
            document = Document(item.uri, path, item.text, item.version)
            self._documents[item.uri] = document
            self._schedule(document, 0)

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """Check a document once nothing is typed any more."""
        if document := self._documents.get(params.text_document.uri):
            for change in params.content_changes:
                document.text = change.text
            document.version = params.text_document.version
            self._schedule(document, self._settings.debounce / 1000)

    def saved(self, params: types.DidSaveTextDocumentParams) -> None:
        """Check at once: files that it imports may have been saved as well."""
        if document := self._documents.get(params.text_document.uri):
            self._schedule(document, 0)

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        """Forget a document."""
        if document := self._documents.pop(params.text_document.uri, None):
            self._outdate(document)
            self._publish(document, [])

    def _outdate(self, document: Document) -> None:
        document.revision += 1
        document.known = None
        if document.timer:
            document.timer.cancel()

    def _schedule(self, document: Document, seconds: float) -> None:
        self._outdate(document)
        loop, revision = asyncio.get_running_loop(), document.revision
        path, text, chosen = document.path, document.text, self._settings
        folder = self._folder(path)

        def begin() -> None:
            self._check(document, lambda: checked(path, text, chosen, folder), revision, loop)

        document.timer = loop.call_later(seconds, begin)

    def _folder(self, path: str) -> Path:
        """The folder of the workspace that holds a file, or the file's own."""
        roots = [to_fs_path(uri) for uri in self.server.workspace.folders]
        above = [Path(root) for root in roots if root and Path(root) in Path(path).parents]
        return max(above, key=lambda root: len(root.parts), default=Path(path).absolute().parent)

    def _check(
        self,
        document: Document,
        job: Callable[[], Checked],
        revision: int,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        def take(found: Checked) -> None:
            if document.revision == revision:
                document.known = found
                text = self._text(document)
                self._publish(document, diagnostics(found, document.uri, text))
                self._repair(document, found, revision, loop)

        self._submit(self._checks, job, lambda: document.revision != revision, take, loop)

    def _repair(
        self,
        document: Document,
        found: Checked,
        revision: int,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        text = document.text

        def take(known: Checked) -> None:
            if document.revision == revision:
                document.known = known

        def stale() -> bool:
            return document.revision != revision

        self._submit(self._repairs, lambda: repaired(found, text, stale), stale, take, loop)

    def _submit(
        self,
        worker: Worker,
        job: Callable[[], Checked],
        stale: Callable[[], bool],
        take: Callable[[Checked], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Do a job in a thread, and give what it finds to the loop."""

        def work() -> None:
            if stale():
                return
            try:
                done, found = take, job()
            except Exception:  # a fault of rlproof's own: told, and the next text is checked
                reason = traceback.format_exc()
                loop.call_soon_threadsafe(self._log, reason)
                return
            loop.call_soon_threadsafe(done, found)

        worker.submit(work)

    def _log(self, reason: str) -> None:
        self.server.window_log_message(types.LogMessageParams(types.MessageType.Error, reason))

    def _text(self, document: Document) -> Text:
        return Text(document.text, self.server.workspace.position_codec.client_num_units)

    def _publish(self, document: Document, found: list[types.Diagnostic]) -> None:
        params = types.PublishDiagnosticsParams(document.uri, found, document.version)
        self.server.text_document_publish_diagnostics(params)

    def hover(self, params: types.HoverParams) -> types.Hover | None:
        """The page of a finding under the cursor."""
        document = self._documents.get(params.text_document.uri)
        if document is None or document.known is None:
            return None
        return hover(document.known, params.position, self._text(document))

    def actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """What can be done about findings on some lines; none while a text is still unchecked."""
        document = self._documents.get(params.text_document.uri)
        if document is None or document.known is None:
            return []
        known, text = document.known, self._text(document)
        return actions(known, params, text, lambda edits: self._change(document, edits))

    def _change(self, document: Document, edits: Edits) -> types.WorkspaceEdit:
        """Edits of one version of the document, where the client can say which."""
        workspace = self.server.client_capabilities.workspace
        can = workspace.workspace_edit if workspace else None
        if can and can.document_changes:
            which = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
            return types.WorkspaceEdit(
                document_changes=[types.TextDocumentEdit(which, list(edits))]
            )
        return types.WorkspaceEdit(changes={document.uri: list(edits)})
