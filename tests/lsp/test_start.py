"""Without its packages the server says what to install, and nothing else imports them."""

import subprocess
import sys

BLOCKED = "import sys; sys.modules['pygls'] = None; from rlproof.cli import main; main(['lsp'])"
LIGHT = (
    "import sys; import rlproof.cli; "
    "assert not [m for m in sys.modules if m.split('.')[0] in ('pygls', 'lsprotocol', 'asyncio')]"
)


def test_a_missing_package_is_named():
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "pip install 'rlproof[lsp]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_command_line_imports_nothing_of_it():
    subprocess.run([sys.executable, "-c", LIGHT], timeout=60, check=True)
