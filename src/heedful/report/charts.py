"""Charts from plain numbers, as Vega-Lite specifications: `histogram`, `lines`, `bars`, `scatter`, heat maps.

Each function gives a plain dictionary. `save` writes it as PNG, SVG, PDF or HTML; `heedful.report.page` puts
many into one file. Specifications are written directly rather than through altair: importing altair costs
0.6 seconds on every command that draws, and the forms here are few.
"""

from heedful.report.bars import bars
from heedful.report.heat import heat_map, small_multiples
from heedful.report.histograms import histogram
from heedful.report.parts import Chart
from heedful.report.points import lines, scatter
from heedful.report.save import save

__all__ = ["Chart", "bars", "heat_map", "histogram", "lines", "save", "scatter", "small_multiples"]
