# SPDX-License-Identifier: BSD-3-Clause
"""docs/language.md is what the model's fields say."""

import runpy
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_what_the_model_says():
    maker = runpy.run_path(str(DOCS / "make_language.py"))
    message = "docs/language.md is out of date: run python docs/make_language.py"
    assert maker["page"]() == (DOCS / "language.md").read_text(encoding="utf-8"), message


def test_the_page_names_every_key():
    from codegen.spec.keys import spec_keys
    from codegen.spec.model import Derivative, Operator

    text = (DOCS / "language.md").read_text(encoding="utf-8")
    for record in (Operator, Derivative):
        for key in spec_keys(record):
            assert f"| `{key}`" in text
