# SPDX-License-Identifier: BSD-3-Clause
"""What tests of operators share: the PrivateUse1 test device."""

from torchext.testing.device import device

__all__ = ["device"]
