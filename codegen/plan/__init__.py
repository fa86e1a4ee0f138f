# SPDX-License-Identifier: BSD-3-Clause
"""The Plan: every decision about the code to generate, as plain values."""
