"""The code of the README runs as it stands there."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.filterwarnings("default::skdisent.exceptions.DisentanglementWarning")
def test_code_blocks_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) >= 5
    namespace = {}
    for block in blocks:
        exec(block, namespace)
    assert "factor 0: latent 0 knows" in capsys.readouterr().out
