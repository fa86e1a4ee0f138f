# SPDX-License-Identifier: BSD-3-Clause
"""Two YAML files in, the C++ of an operator library out.

    text --spec--> records --analysis--> Plan --emit--> files --output--> disk

The packages, each of which imports only what stands before it:

    errors      where a mistake is, and how all of a run are collected
    schema      the signature of an operator, as PyTorch's dispatcher has it
    spec        the two YAML languages: a record an entry, and the reader of files
    fused       expressions of elements and rows, their derivatives, and what follows from them
    cpp         how C++ is spelled: names, types, defaults, templates, the folding of lines
    output      generated files as values, and the one place that touches the disk
    plan        what will be generated, as plain values
    formula     what formulas of gradients and tangents name, call and save
    analysis    records to the Plan: every decision; begin at ``analysis/library.py``
    emit        the Plan to files, one module an artefact; it knows cpp, output and plan

Nothing here imports torch, torchgen or a compiled library.
"""
