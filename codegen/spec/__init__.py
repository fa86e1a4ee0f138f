# SPDX-License-Identifier: BSD-3-Clause
"""The two YAML languages: what an entry may say, as records, and how files are read into them."""
