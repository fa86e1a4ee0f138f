# SPDX-License-Identifier: BSD-3-Clause
"""One module per generated artefact: `emit(plan)` yields its files and decides nothing.

What the compiler is given, `translation_units`, follows from the files of the others.
"""
