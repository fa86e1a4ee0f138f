# SPDX-License-Identifier: BSD-3-Clause
"""Formulas of gradients and tangents: what they name, call and save, and which mistakes show."""
