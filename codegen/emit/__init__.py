# SPDX-License-Identifier: BSD-3-Clause
"""One module per generated artefact: `emit(plan)` yields its files and decides nothing."""
