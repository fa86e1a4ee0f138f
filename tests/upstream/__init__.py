# SPDX-License-Identifier: BSD-3-Clause
"""Proves torchext against the two YAML files that PyTorch ships.

Every differentiable operator of the installed torch is mirrored into a namespace of its own, built
by the public path, and compared with aten's on the calls that PyTorch's own OpInfos make.

    spec      which operators, and the two YAML files of the mirror
    kernels   one kernel per operator, which forwards to aten below autograd
    build     codegen, compiler and linker, each of which may refuse single entries
    blame     which entry a compiler or linker error belongs to
    samples   the calls of aten that the OpInfos make, kept on disk
    calls     one call: its tensors, made ready for reverse or forward mode
    compare   one call of the mirror against aten's: value, flags, gradients, tangents
    worker    compares a list of operators in a process that may crash
    report    the columns, the table of what falls short, and the JSON
    run       the command line
"""
