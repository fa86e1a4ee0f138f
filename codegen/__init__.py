# SPDX-License-Identifier: BSD-3-Clause
"""Two YAML files in, the C++ of an operator library out.

    text --load--> model --analysis--> Plan --emit/*--> files --output--> disk

Read the modules in this order: ``errors`` (where a mistake is), ``schema`` (the operator
signature), ``model`` (one record per YAML entry), ``load`` (YAML to model), ``formula`` (what a
gradient formula names), ``analysis`` (every decision, the Plan; ``dispatch_analysis``,
``structured_analysis`` and ``autograd_analysis`` make its parts), ``type_table`` and ``cpp_names``
(schema types and names in C++), ``template`` and ``output`` (text and files), and one module of
``emit`` per artefact.

Nothing here imports torch, torchgen or a compiled library, and no module imports a later one.
"""
