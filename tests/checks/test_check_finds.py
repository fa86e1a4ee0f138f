# SPDX-License-Identifier: BSD-3-Clause
"""Every check fails for a mistake of its kind, and for no operator that has none."""

import re
import subprocess
import sys

import pytest
import torch

import torchext
from torchext.compat import version
from torchext.testing import CheckError, check, facts, samples
from torchext.testing.checking import Runner
from torchext.testing.checks import CHECKS, transforms, values
from torchext.testing.facts import read_table
from torchext.testing.report import State

# operator -> the checks that fail, and words of what the first of them says
FAILURES = {
    "kept_strides": ("meta", r"permuted arguments.*\[1, 3\].*\[4, 1\]"),
    "wrong_gradient": ("gradcheck", "Jacobian mismatch"),
    "wrong_tangent": ("forward_mode", "Jacobian computed with forward mode mismatch"),
    "wrong_second": ("gradgradcheck", "Jacobian mismatch"),
    "reads_memory": ("layouts vmap meta", "with permuted arguments: .*not close"),
    "needs_elements": ("empty", "size 3 -> 0: the operator raises .* its Meta kernel gives"),
    "wrong_scalar": ("empty", "with no dimension, gradcheck: Jacobian mismatch"),
    "claims_int": ("dtypes", "torch.int64 is in `dtypes:`, and raises RuntimeError"),
    "bad_half": ("dtypes", "torch.float16 against float64"),
    "twice_": ("forms opcheck compile compile_dynamic", "not close"),
    "twice.out": ("forms opcheck compile_dynamic", "out= of torch.bool is taken for result 0"),
    "whole": ("vmap", r"in_dims=\(0,\): .*not close"),
    "apart": ("layouts vmap", "with sliced arguments: .*not close"),
    "repeated": ("layouts", "with expanded arguments: .*not close"),
    "last_batch": ("vmap", r"in_dims=\(-1,\): .*not close"),
    "replaced.out": ("forms opcheck meta compile_dynamic", "out= tensors lose their strides"),
    "borrowed": ("layouts vmap", "with x permuted: .*not close"),
    "from_start": ("layouts", "with offset arguments: .*not close"),
    "last_channels": ("layouts", "with channels-last arguments: .*not close"),
    "two_batches": ("vmap", r"in_dims=\(0, -1\): .*not close"),
    "promoted": ("meta", r"with arguments of torch.int32 .*torch.int64.*torch.int32"),
    "frozen": ("gradcheck", "where y alone requires grad: .*not close"),
    "coarse": ("gradcheck", "Jacobian mismatch"),
    "grown.out": ("forms opcheck compile_dynamic", "out= of tensors of another size: .*shape"),
    "hidden_write": ("opcheck layouts autocast", "Argument x is not defined as mutable"),
    "one_size": ("compile_dynamic empty", "compiled again for other sizes"),
    "own_cast": ("autocast", "bfloat16 != torch.float32"),
    "number": ("layouts opcheck pickle device", r"permuted arguments: results \[\d+\], not"),
    "halve_": ("forms", "not close"),
    "wrong_fixed": ("gradcheck", "Jacobian mismatch"),
    "own_backward": ("gradcheck forward_mode", "Jacobian mismatch"),
    "no_room_": ("samples", "no sample has a result that fits what is written to"),
    "not_made": ("samples", "no samples, and none could be made from the schema"),
    "takes_a_stream": ("samples", "no samples, and none could be made from the schema"),
    "on_cpu": ("device", "a result is on another device"),
    "strided_gradient": ("layouts", "with permuted arguments: .*not close"),
    "centred_backward": ("layouts vmap meta", "with permuted arguments: .*not close"),
    "claims_index": ("dtypes", "torch.int32 is in `dtypes:`, and raises RuntimeError"),
    "bad_integers": ("dtypes", "torch.int32 against int64"),
    "bad_bfloat16": ("dtypes", "torch.bfloat16 against float32"),
    "made_here": ("meta opcheck compile compile_dynamic", "the Meta kernel is on a device"),
    "drawn.out": ("forms compile compile_dynamic", "out= of new tensors: .*not close"),
    "single_weight": ("gradcheck", "Jacobian mismatch"),
    "no_half_backward": ("dtypes", "torch.bfloat16 is in `dtypes:`, and backward raises"),
    "bad_half_backward": ("dtypes", "gradients, torch.bfloat16 against float64: .*not close"),
    "number_here": ("device", r"against the CPU: results \[8\], not \[7\]"),
    "ignores_factor": ("gradcheck", "with factor=1.375: Jacobian mismatch"),
    "ignores_scalar": ("forward_mode", "with factor=1.375: Jacobian computed with forward mode"),
    "ignores_weight": ("gradcheck", r"with weight=\[3\]: Jacobian mismatch .* to input 1"),
    "ignores_count": ("gradcheck", "with count=2: Jacobian mismatch"),
    "ignores_keepdim": ("meta", r"with keepdim=True: .*float32\[2, 1\].*float32\[2\] strides"),
    "real_product": ("gradcheck gradgradcheck", "with a complex x beside real tensors: Expected"),
    "some_places": ("vmap", "not close"),
    "no_batches": ("vmap", "RuntimeError: a mistake in a batching rule"),
    "counted_product": ("compile compile_dynamic", "inductor, arguments after step 1: .*not close"),
    "without_version": (
        "compile compile_dynamic forward_mode",
        "aot_eager, gradients of two calls before any backward: .*not close",
    ),
    "one_for_two": ("opcheck", "result 1 is result 0 too, and both are new by the schema"),
    "same_or_new": (
        "opcheck gradcheck forward_mode vmap layouts empty meta compile compile_dynamic autocast "
        "device pickle",
        "faultytest::same_or_new: the kernel returned one of its arguments, expected a new tensor",
    ),
    "constant": ("samples", r"none could be made from the schema: add `samples: \[{}\]`"),
}
if version() >= (2, 14):  # whose opcheck and torch.compile do not find them
    FAILURES["replaced.out"] = ("forms meta compile_dynamic", FAILURES["replaced.out"][1])
    FAILURES["grown.out"] = ("forms compile_dynamic", FAILURES["grown.out"][1])
    FAILURES["twice.out"] = ("forms compile_dynamic", FAILURES["twice.out"][1])
    FAILURES["made_here"] = ("meta", FAILURES["made_here"][1])
if version() < (2, 13):  # which functionalizes an out= form by its functional one only
    FAILURES["places.out"] = ("opcheck compile compile_dynamic", "output has alias annotations")
WITHOUT_A_MISTAKE = set(
    "right made single integers complexes rounded on_devices frozen_backward grown parts parts.out "
    "looks_up halve no_room twice no_second draws factory drawn mixed noisy tied replaced "
    "places.out equals equals_ to_float8 only_doubles steps "
    "highest pooled real_gradient one_gradient remembers_ remembers nonzero_places rows "
    "unknown_mode other_constant counts by_reverse by_reverse_backward".split()
) - set(FAILURES)


@pytest.mark.parametrize("operator", FAILURES)
def test_a_mistake_fails_its_checks_and_no_others(operator, faulty_report):
    checks, words = FAILURES[operator]
    failed = {c.check: c.reason for c in faulty_report.failures if c.operator == operator}
    assert set(failed) == set(checks.split())
    reason = " ".join(failed[checks.split()[0]].split())
    assert re.search(words, reason), reason


def test_operators_without_a_mistake_fail_nothing(faulty_report):
    failed = {cell.operator for cell in faulty_report.failures}
    assert not failed & WITHOUT_A_MISTAKE
    assert failed | WITHOUT_A_MISTAKE == set(faulty_report.locations)


def test_every_check_fails_for_some_mistake(faulty_report):
    assert {cell.check for cell in faulty_report.failures} == set(CHECKS)


def test_where_the_samples_fail_nothing_else_is_checked(faulty_report):
    cells = [c for c in faulty_report.cells.values() if c.operator == "takes_a_stream"]
    assert [c.state for c in cells] == [State.FAILED] + [State.NOT_RUN] * (len(CHECKS) - 1)


def test_samples_are_made_from_the_schema_and_the_meta_kernel(faulty_report):
    assert faulty_report.made_samples == ["made"]
    assert faulty_report.cells["made", "layouts"].state is State.PASSED


def test_what_an_operator_refuses_by_name_is_no_failure(faulty_report):
    refused = {(c.operator, c.check) for c in faulty_report.cells.values()
               if c.state is State.REFUSED}  # fmt: skip
    assert refused == {
        ("no_second", "gradgradcheck"),
        ("no_half_backward", "gradgradcheck"),
        *(("real_gradient", check) for check in ("gradcheck", "gradgradcheck", "forward_mode")),
        *((name, "device") for name in ("draws", "drawn", "drawn.out")),
        ("strided_gradient", "gradgradcheck"),
        *((name, "vmap") for name in ("number", "drawn.out", "nonzero_places")),
    }
    reason = faulty_report.cells["no_second", "gradgradcheck"].reason
    assert reason == "derivative for faultytest::twice is not implemented"


def test_a_backward_without_tangents_has_second_derivatives(faulty_report):
    cell = faulty_report.cells["by_reverse", "gradgradcheck"]
    assert cell.state is State.PASSED
    assert cell.reason.startswith("no forward over reverse: ")
    assert "faultytest::by_reverse_backward" in cell.reason


def test_what_no_formula_is_checked_with_is_said(faulty_report):
    lines = [x for x in str(faulty_report).splitlines() if "no formula is checked" in x]
    assert "unknown_mode: no formula is checked with another mode, place" in lines
    assert not any(x.startswith(("ignores_", "right")) for x in lines)


def test_the_end_is_an_error_that_counts(faulty_library):
    with pytest.raises(CheckError, match="1 checks of faultytest failed") as raised:
        check(faulty_library, operators=["faultytest::whole"], checks=["vmap", "meta"])
    assert [c.check for c in raised.value.report.failures] == ["vmap"]


def test_the_matrix_is_printed_and_written_as_a_page(faulty_library, tmp_path, capsys):
    page = tmp_path / "matrix.html"
    report = check(
        faulty_library,
        operators=["right", "whole"],
        checks=["vmap", "dtypes"],
        html=page,
        raise_exception=False,
    )
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert lines[0] == f"faultytest on cpu, torch {torch.__version__}"
    assert "right  ✓ ✓ ✓ " in lines and "whole  ✓ ✗ – " in lines
    assert [x.rstrip() for x in lines] == [x.rstrip() for x in str(report).splitlines()]
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.count("<tr>") == 3 and text.count("class=failed") == 2  # the cell and the legend
    assert "native_functions.yaml" in text and "not close" in text


def test_what_torch_warns_of_in_cpp_is_not_seen(faulty_library, capfd):
    """An out= tensor with elements is resized, which torch warns of on stderr."""
    assert check("myns", operators=["neg.out"], checks=["forms"]).passed
    assert capfd.readouterr().err == ""


def test_a_page_that_cannot_be_written_is_an_error_before_the_checks(
    faulty_library, tmp_path, capsys
):
    with pytest.raises(FileNotFoundError):
        check(faulty_library, html=tmp_path / "missing" / "matrix.html")
    assert capsys.readouterr().out == ""


def test_the_default_device_is_not_asked(faulty_library):
    with torch.device("meta"):
        assert check(faulty_library, operators=["right"], checks=["layouts", "gradcheck"]).passed


@pytest.mark.parametrize(
    "mode",
    [torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu", torch.bfloat16)],
    ids=["no_grad", "inference_mode", "autocast"],
)
def test_the_modes_of_the_caller_do_not_matter(mode, faulty_library):
    with mode():
        report = check(
            faulty_library,
            operators=["right", "wrong_gradient"],
            checks=["gradcheck", "gradgradcheck", "layouts", "opcheck"],
            raise_exception=False,
        )
    assert [(c.operator, c.check) for c in report.failures] == [("wrong_gradient", "gradcheck")]
    assert report.cells["right", "gradgradcheck"].state is State.PASSED


def errors_of(program):
    """What a Python of its own writes to stderr, which must end well."""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stderr


def test_a_device_without_autocast_is_not_asked_for_it():
    errors_of(
        "import torch\n"
        "from torchext.testing.outcomes import _plain_modes\n"
        "torch.utils.rename_privateuse1_backend('other')\n"
        "with _plain_modes(torch.device('other')):\n"
        "    pass"
    )


@pytest.mark.parametrize(
    ("wrong", "of", "is_rounded"), [(1, 1, True), (3, 20, True), (1, 20, False), (1, 9, True)]
)
def test_few_numbers_may_be_another_step(wrong, of, is_rounded):
    wide = torch.arange(of)
    found = wide + (wide < wrong)
    with pytest.raises(AssertionError, match="not equal"):
        values._check_steps(found, wide, is_rounded, "steps")
    values._check_steps(wide + (wide < of // 10), wide, True, "steps")


def test_operators_of_the_namespace_without_an_entry_are_named(faulty_library, tmp_path):
    name = "faultytest::elsewhere"
    library = torch.library.Library("faultytest", "FRAGMENT")
    try:
        library.define("elsewhere(Tensor x) -> Tensor")
        page = tmp_path / "matrix.html"
        report = check(faulty_library, operators=["right"], checks=["pickle"], html=page)
    finally:
        library._destroy()
    line = "of faultytest and not of its spec, not checked: elsewhere"
    assert line in str(report).splitlines() and line in page.read_text(encoding="utf-8")
    assert name not in torch._C._dispatch_get_all_op_names()


# Mistakes that another device does not show: the fallback gives the kernel copies and returns some,
# autocast has another key, memory that nobody wrote to holds something else, and random numbers are
# refused.
NOT_ON_A_DEVICE = {
    "hidden_write": "opcheck layouts autocast",
    "own_cast": "autocast",
    "reads_memory": "vmap",
    "centred_backward": "vmap",
    "drawn.out": "forms",
    "made_here": "meta opcheck",
    "apart": "layouts vmap",
    "repeated": "layouts",
    "replaced.out": "forms meta",
    "from_start": "layouts",
    "same_or_new": FAILURES["same_or_new"][0],
}
# whose check of fake tensors compares devices, and what Meta says with the device's kernel
ONLY_ON_A_DEVICE = {"on_cpu": "opcheck", "number_here": "opcheck"}


def test_the_same_mistakes_are_found_on_another_device(faulty_library, device):
    report = check(faulty_library, device="torchext", raise_exception=False)
    assert report.device == str(device)
    found = {(c.operator, c.check) for c in report.failures}
    left_out = {(op, c) for op, checks in NOT_ON_A_DEVICE.items() for c in checks.split()}
    wanted = {(op, c) for op, (checks, _) in FAILURES.items() for c in checks.split()}
    wanted |= {(op, c) for op, checks in ONLY_ON_A_DEVICE.items() for c in checks.split()}
    assert found - left_out == {cell for cell in wanted if "compile" not in cell[1]} - left_out
    reasons = {
        name: {c.reason for c in report.cells.values() if c.operator == name}
        for name in ("draws", "factory")
    }
    (reason,) = reasons["draws"]
    assert "cannot fall back to the CPU: it draws random numbers" in reason
    assert reasons["factory"] == {"no sample has a tensor on torchext:0"}


def test_the_modes_of_the_fallback_are_the_users(device):
    """An operator that runs on the CPU has no mistake, and the one warning is kept for them."""
    with torchext.fallback.mode("error"):
        assert check("myns", operators=["dot"], checks=["device"]).passed
    torchext.fallback.reset_stats()
    with torchext.fallback.mode("warn"):
        assert check("myns", operators=["dot"], checks=["device"]).passed
        with pytest.warns(UserWarning, match="myns::dot"):
            torch.ops.myns.dot(*torch.ones(2, 2, device=device))


def test_a_backward_before_the_test_device_is_warned_of():
    errors = errors_of(
        "import torch, torchext.testing as t\n"
        "torch.ones(1, requires_grad=True).backward()\n"
        "r = t.check('myns', operators=['neg'], checks=['device', 'meta'], isolate=False)\n"
        "assert r.cells['neg', 'device'].state.name == 'NOT_RUN' and r.passed"
    )
    assert "<string>:3: UserWarning: the check 'device' has nothing to check" in errors


@pytest.mark.parametrize(
    ("device_name", "error", "words"),
    [
        ("meta", ValueError, "meta tensors have no values"),
        ("torchext:7", RuntimeError, "no test device has index 7"),
        ("nonsense", RuntimeError, "device type at start of device string: nonsense"),
    ],
)
def test_a_device_that_is_not_there_is_an_error(device_name, error, words, faulty_library):
    with pytest.raises(error, match=words):
        check(faulty_library, device=device_name)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"operators": ["wholes"]}, "there is no operator 'wholes', but whole"),
        ({"operators": ["xyz"]}, "there is no operator 'xyz', but right, made"),
        ({"operators": "whole"}, "the operators are a list of names, not 'whole'"),
        ({"operators": []}, "the list of operators is empty"),
        ({"checks": ["vmaps"]}, "there is no check 'vmaps', but vmap"),
    ],
    ids=str,
)
def test_names_that_mean_nothing_are_errors(arguments, words, faulty_library):
    with pytest.raises(ValueError, match=words):
        check(faulty_library, **arguments)


def known_failures(tmp_path, text):
    path = tmp_path / "known.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_known_failures_are_no_failures(faulty_library, tmp_path):
    known = known_failures(
        tmp_path,
        "# of the tests\n\nfaultytest::whole vmap: its rule is wrong\n"
        "reads_memory  vmap , layouts: strides\ntakes_a_stream samples: no sample has a stream\n",
    )
    report = check(
        faulty_library,
        operators=["whole", "reads_memory", "takes_a_stream"],
        checks=["samples", "vmap", "layouts", "pickle"],
        known_failures=known,
    )
    cell = report.cells["whole", "vmap"]
    assert cell.state is State.KNOWN and cell.reason.startswith("its rule is wrong (in_dims=")
    assert report.count(State.KNOWN) == 4
    assert "K whole vmap: its rule is wrong" in str(report)


def test_a_known_failure_that_fails_no_more_fails(faulty_library, tmp_path):
    lines = (
        "twice vmap: once was slow",
        "twice forms: had others",
        "no_second gradgradcheck: to do",
    )
    lines += ("takes_a_stream samples: has no stream",)
    report = check(
        faulty_library,
        operators=["twice", "no_second", "takes_a_stream"],
        checks=["vmap", "pickle", "forms", "gradgradcheck"],
        # where the samples fail, nothing can be said of other checks
        known_failures=known_failures(tmp_path, "\n".join([*lines, "takes_a_stream vmap: x"])),
        raise_exception=False,
    )
    reasons = {(c.operator, c.check): c.reason for c in report.failures}
    assert reasons == {
        ("twice", "vmap"): "it no longer fails; it is known to fail: once was slow",
        ("twice", "forms"): "it no longer fails, there is nothing to check (a functional form); "
        "it is known to fail: had others",
        ("no_second", "gradgradcheck"): "it no longer fails, it refuses (derivative for "
        "faultytest::twice is not implemented); it is known to fail: to do",
    }


def test_a_test_device_that_cannot_be_built_is_said_once(faulty_library, tmp_path, monkeypatch):
    calls = []

    def unwritable():
        calls.append(None)
        raise PermissionError("build/testing is not writable")

    monkeypatch.setattr(transforms.test_devices, "device", unwritable)
    transforms._comparison_device.cache_clear()
    try:
        with pytest.warns(UserWarning, match="has nothing to check: .* is not writable"):
            report = check(
                faulty_library,
                operators=["twice", "right"],
                checks=["device", "pickle"],
                known_failures=known_failures(tmp_path, "twice device: has none\n"),
                isolate=False,  # where the device is replaced
            )
    finally:
        transforms._comparison_device.cache_clear()
    line = "– device, every operator: the test device cannot be used: build/testing is not writable"
    assert line in str(report).splitlines()
    assert len(calls) == 1


def test_the_examples_of_a_batch_differ(faulty_library):
    runner = Runner(faulty_library, operators=["integers", "looks_up"])
    for subject in runner.subjects:
        for seed, sample in enumerate(subject.samples):
            for examples in transforms._examples(subject, sample, seed):
                differ = not all(torch.equal(examples[0], other) for other in examples)
                # places that the sample gives by value stay
                assert differ == ("values" not in str(sample) or examples[0].dim() == 2)


@pytest.mark.parametrize(
    ("type_", "values"), [("bool[3]", [True] * 3), ("int[2]", [1, 1]), ("float[]", [0.5, 0.5])]
)
def test_a_made_list_has_the_length_of_its_type(type_, values):
    (argument,) = torch._C.parse_schema(f"f({type_} x) -> ()").arguments
    assert samples._guess(argument.type, [3], None, argument.N) == values


def test_a_tensor_without_dtype_could_index_where_it_is_given_integers():
    sample = {"x": {"tensor": {"size": [3]}}}
    assert samples.could_index(sample, torch.int64)
    assert not samples.could_index(sample, torch.float32)
    assert not samples.could_index({"x": {"tensor": {"size": [0]}}}, torch.int64)


def test_the_bounds_of_a_sample_hold_for_integers():
    for dtype in (torch.int64, torch.uint8, torch.uint16, torch.uint64):
        made = samples._tensor({"size": [1000], "low": 0.5, "high": 3}, dtype)
        assert set(made.tolist()) == {1, 2}
    made = samples._tensor({"size": [1000]}, torch.uint16)
    assert set(made.tolist()) == {0, 1, 2}


@pytest.mark.parametrize(
    ("bound", "least", "most"),
    [
        ({"low": 10}, 10, 20), ({"high": -10}, -20, -10), ({"low": 2}, 2, 10), ({"high": 2}, -9, 2),
        ({"high": -5}, -9, -5), ({"high": 0}, -9, 0), ({"high": -8.5}, -9, -8.5),
    ],
)  # fmt: skip
def test_one_bound_of_a_sample_is_enough(bound, least, most):
    unsigned = (torch.uint8, torch.uint16, torch.uint64) if most > 0 else ()
    for dtype in (torch.float64, torch.float16, torch.int64, torch.complex64, *unsigned):
        made = samples._tensor({"size": [1000], **bound}, dtype)
        made = made.long() if dtype in unsigned else made
        parts = torch.view_as_real(made) if made.is_complex() else made
        assert least <= parts.min().item() <= parts.max().item() <= most


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("whole vmap", "expected 'OPERATOR CHECKS: REASON'"),
        ("whole vmap:", "expected 'OPERATOR CHECKS: REASON'"),
        ("wholes vmap: x", "'faultytest' has no operator 'wholes'"),
        ("whole vmaps: x", "there is no check 'vmaps', but samples, opcheck"),
        ("whole *: x", "expected 'OPERATOR CHECKS: REASON'"),
        ("other::whole vmap: x", "'faultytest' has no operator 'other::whole'"),
        ("whole vmap: x\nwhole vmap: y", "whole vmap stands twice"),
    ],
)
def test_mistakes_in_the_file_of_known_failures(line, words, faulty_library, tmp_path):
    known = known_failures(tmp_path, f"# x\n{line}\n")
    with pytest.raises(ValueError, match=rf"known.txt:[23]: {words}"):
        check(faulty_library, known_failures=known)


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ([], "torch.float32 is not in `dtypes:`, and the operator takes it"),
        (["float32"], "torch.bfloat16 is not in `dtypes:`, and the operator takes it"),
    ],
)
def test_a_dtype_that_is_taken_and_not_claimed_is_a_mistake(
    left, words, faulty_library, monkeypatch
):
    """The generated code refuses what `dtypes:` leaves out; here the table says less than it."""

    def read_less(library):
        table = read_table(library)
        (single,) = [facts for facts in table.operators if facts.name == "single"]
        for of_key in single.dtypes.values():
            of_key["x"] = left
        return table

    monkeypatch.setattr(facts, "read_table", read_less)
    report = check(
        faulty_library,
        operators=["single"],
        checks=["dtypes"],
        raise_exception=False,
        isolate=False,
    )
    (failure,) = report.failures
    assert words in failure.reason


def test_a_library_without_a_table_of_operators_says_so(faulty_library, tmp_path):
    with pytest.raises(FileNotFoundError, match="has no table of operators .* build it again"):
        read_table(str(tmp_path / "_C.so"))
