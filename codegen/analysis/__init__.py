# SPDX-License-Identifier: BSD-3-Clause
"""Records in, the Plan out: every decision, a module for each part of the language."""
