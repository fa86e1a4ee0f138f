# SPDX-License-Identifier: BSD-3-Clause
"""A small operator library, as somebody outside this repository would write it."""

import torchext

ops = torchext.load_library(__name__)
