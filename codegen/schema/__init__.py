# SPDX-License-Identifier: BSD-3-Clause
"""Operator schemas: their tokens, types and values, how they are read, and the schemas of forms."""
