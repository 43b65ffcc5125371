"""Charts and pages, made from run directories and plain numbers alone. Never imports torch.

The package can be called: `heedful.report(run, out="report.html")` is `heedful.api.use.report`.
"""

from heedful.callable_package import make_callable

make_callable(__name__, "heedful.api.use:report")
