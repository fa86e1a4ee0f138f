# SPDX-License-Identifier: BSD-3-Clause
"""Makes the generator importable by its name in a checkout, however pytest is started."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)
