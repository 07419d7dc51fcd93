import sys


def calls_of(function):
    """How many functions a call enters: a measure of work that does not depend on the machine."""
    entered = 0

    def count(_frame, event, _argument):
        nonlocal entered
        entered += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return entered
