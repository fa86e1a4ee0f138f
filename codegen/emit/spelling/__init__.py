# SPDX-License-Identifier: BSD-3-Clause
"""Text that several emitters share."""
