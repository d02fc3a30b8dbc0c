"""The mistakes of users at the command line."""


def mistake(told):
    """The one line on stderr of a call that failed with exit code 2 and no data."""
    code, out, err = told
    assert (code, out) == (2, "")
    lines = [line for line in err.splitlines() if line.startswith("fedscape: ")]
    assert len(lines) == 1
    assert "Traceback" not in err
    return lines[0]
