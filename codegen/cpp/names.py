# SPDX-License-Identifier: BSD-3-Clause
"""Names of a spec as identifiers of C++, which hide nothing that generated code uses."""

from __future__ import annotations

import errno
import re

KEYWORDS = frozenset(  # of C++
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t "
    "char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit continue decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace new noexcept not "
    "not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires "
    "return short signed sizeof static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename typeof union unsigned using virtual void "
    "volatile wchar_t while xor xor_eq".split()
)
_MACROS = frozenset(  # of the headers that generated code includes
    "ACCESSPERMS ALLPERMS BUFSIZ CHECK CSIGNAL DCHECK DEFFILEMODE DLOG EOF INFINITY LOG MAXFLOAT "
    "NAN NFDBITS NULL NZERO RETSIGTYPE SNAN SNANF SNANL VLOG WCONTINUED WEOF WEXITED WEXITSTATUS "
    "WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED WNOHANG WNOWAIT WSTOPPED WSTOPSIG WTERMSIG "
    "WUNTRACED alloca assert assert_perror errno issubnormal linux math_errhandling offsetof "
    "sched_priority st_atime st_ctime st_mtime stderr stdin stdout strdupa strndupa timeradd "
    "timerclear timercmp timerisset timersub unix va_arg va_copy va_end va_start".split()
) | frozenset(errno.errorcode.values())
_FAMILIES = re.compile(  # of macros, of those headers and of the compiler
    r"(AT|C10|CAFFE2|M|PTHREAD|PY|PYBIND11|TORCH)_[A-Z0-9_]+|CHAR_BIT"
    r"|(U?(CHAR|SHRT|INT\w*|LONG|LLONG)|SCHAR|S?SIZE|PTRDIFF|W(CHAR|INT)|L?DBL|FLT|RAND)"
    r"_(MAX|MIN|WIDTH)|(PRI|SCN)[diouxX](8|16|32|64|MAX|PTR|FAST\d+|LEAST\d+)"
    r"|__[A-Z]\w*|__(attribute|int128|typeof|asm|extension|inline|const|volatile|restrict|signed"
    r"|alignof|label|real|imag|thread|func|cplusplus|builtin|linux|unix|gnu|x86|amd64)\w*"
)
# Some 1,700 more, of which the headers may define any.
_LIKE_A_MACRO = re.compile("_*[A-Z][A-Z0-9]*_[A-Z0-9_]*")
_USED_BY_HANDLES = frozenset(
    "Operator at c10 call name overload_name redispatch schema std torch torchext".split()
)
# What the struct of an expression declares, and what stands beside it.
_USED_BY_EXPRESSIONS = frozenset(
    "are_read common compared compute computes_numbers conditions conditions_of_row "
    "counts_elements defaults elements exponents has_negative_power has_rows indices "
    "input_names inputs keeps kept largest_number least_number length_slot makes "
    "may_be_inputs needs_counts name numbers numbers_of_row numbers_used of_results of_row "
    "of_rows passes places reads reduction reductions refuses_empty results returns row_results "
    "rules scalars sizes slices slots takes_complex used_numbers uses_kept uses_positions Loops "
    "RowLoops Types".split()
)
_TYPES = frozenset(["int64_t"])  # which generated code writes without a namespace
# What the generated functions around a call use themselves; an argument must not hide it.
_USED = frozenset(
    "Aside Expected Kernel Op SelectedDevice any_requires_grad as_argument before_write "
    "below_adinplace_or_view "
    "below below_autograd check_apart check_copied check_copied_list check_defined check_elements "
    "check_inplace check_length check_new check_no_argument check_no_requires_grad "
    "check_no_tangent check_no_twins check_no_view check_not_complex check_out check_same_device "
    "check_written_apart device_of error expected given_or guard has_tangent has_tensor held iter "
    "kAnyNumber kHome kKernel kept keys laid_out name_caller native node only_view op operators "
    "opmath_t or_missing precomputed primal_of raw_tangent_of rebase_result_history recorded_node "
    "records returned save save_value save_written scalar_t set_result_history set_tangent "
    "tangent_of torchext_values unboxed unshared variable_list without_tangent "
    "writable_tangent_of write_back written_tangent".split()
)
# And what they make of the names of arguments, or number.
_MADE = re.compile(r"(dtypes|given)_\d+|\w+_(as_list|before|given|laid_out)")


def handle_name(name: str) -> str:
    """The name of an operator's handle, a class: it hides no other's types, nor its own members."""
    return f"{name}_" if name in _USED_BY_HANDLES else identifier(name)


def expression_name(name: str) -> str:
    """The name of the struct of an operator's expression."""
    return f"{name}_" if name in _USED_BY_EXPRESSIONS else handle_name(name)


def identifier(name: str) -> str:
    """The name as a C++ identifier: keywords, macros and types get an underscore."""
    is_macro = name in _MACROS or _FAMILIES.fullmatch(name) is not None
    return f"{name}_" if is_macro or name in KEYWORDS or name in _TYPES else name


def is_qualified(name: str) -> bool:
    """Whether every part of a name such as `a::b` is an identifier that C++ has no meaning for."""
    return all(identifier(part) == part for part in name.split("::"))


def parameter_name(name: str) -> str:
    """The identifier of an argument or result, which must hide nothing that generated code uses,
    and may not be called as a macro that some header has."""
    is_used = name in _USED or _MADE.fullmatch(name) or _LIKE_A_MACRO.fullmatch(name)
    return f"{name}_" if is_used else identifier(name)


# Where the functions and classes of a library stand, by what its spec calls them.


def kernel(namespace: str, name: str) -> str:
    """The function that a dispatch key names, which may say the namespace."""
    space, _, name = name.rpartition("::")
    return f"{space or namespace}::native::{name}"


def structured_kernel(namespace: str, name: str) -> str:
    """The class of a structured operator's kernel."""
    space, _, name = name.rpartition("::")
    return f"{space or namespace}::native::structured_{name}"


def ufunc_kernel(namespace: str, base: str, key: str) -> str:
    """The class of a kernel that is a loop over a scalar function."""
    return f"{namespace}::native::structured_ufunc_{base}_{key}"


def meta_class(namespace: str, functional: str) -> str:
    """The class of a structured operator's meta function."""
    return f"{namespace}::meta::structured_{functional}"


def rule_class(namespace: str, name: str) -> str:
    """The class of an operator's rule, which is generated."""
    return f"torchext::generated::{namespace}::rules::rule_{handle_name(name)}"
