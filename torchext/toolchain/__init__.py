# SPDX-License-Identifier: BSD-3-Clause
"""How an operator library is built; `torchext.build` is the public face.

op_library     what the setup.py says: OpLibrary, a setuptools Extension
command        build_ext: generate, compile, link, copy
without_torch  build_ext where torch is missing: says so when it is asked to build
generate       runs the code generator, reads its manifest
platforms      the table of compiler, linker and loader flags
cuda           whether and with which toolkit CUDA kernels are compiled
environment    ninja, the C++ compiler and the number of jobs
one_build      lets one build at a time into a project
build_log      captures what compilers print
cache          what users' libraries have alike, kept from build to build
compilation    a compiler, its flags and what it read, for what the cache keeps
precompiled    torch's headers, compiled once
compiled_once  the C++ of every library, compiled once
runtime_module torchext's own Python module, where no library brought it
csrc           where that C++ is
locks          one process at a time
diagnosis      compiler and linker errors -> which kernel is missing or differs from its schema
linking        links the library and its Python part; replaces files in one step
record         the JSON beside a library: what it was built for
"""
