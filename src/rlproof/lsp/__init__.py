"""A language server: findings, repairs and explanations in an editor (`rlproof lsp`).

Needs the extra `lsp` (pygls); nothing of it is imported before the server starts. Protocol:
Language Server Protocol 3.17, https://microsoft.github.io/language-server-protocol/.
"""
