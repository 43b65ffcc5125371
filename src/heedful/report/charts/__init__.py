"""Charts from plain numbers, as Vega-Lite specifications: `histogram`, `lines`, `bars`, `scatter`, heat maps.

Each function returns a plain dictionary. `save_chart` writes it as PNG, SVG, PDF or HTML;
`heedful.report.page` puts many into one file. Specifications are written directly rather than through altair:
importing altair costs 0.6 seconds in every command that draws, and there are few kinds of charts here.
"""

from heedful.report.charts.bar_charts import bars
from heedful.report.charts.heat_maps import heat_map, small_multiples
from heedful.report.charts.histograms import histogram
from heedful.report.charts.images import save_chart
from heedful.report.charts.line_charts import lines
from heedful.report.charts.scatter_plots import scatter
from heedful.report.charts.vega import Chart

__all__ = ["Chart", "bars", "heat_map", "histogram", "lines", "save_chart", "scatter", "small_multiples"]
