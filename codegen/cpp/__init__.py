# SPDX-License-Identifier: BSD-3-Clause
"""How C++ is spelled: names, types, defaults, literals, templates and the folding of lines."""
