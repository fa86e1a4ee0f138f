# SPDX-License-Identifier: BSD-3-Clause
"""One module per generated artefact, with its name: `emit(plan)` yields its files, decides nothing.

What the compiler is given, `units`, follows from the files of the others.
"""
