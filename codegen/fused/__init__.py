# SPDX-License-Identifier: BSD-3-Clause
"""Operators that are one expression: the language, its functions, and their derivatives."""
