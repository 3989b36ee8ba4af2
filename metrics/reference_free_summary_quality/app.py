"""The page of this metric's Space."""

from movers.serve import metric_page

demo = metric_page("reference_free_summary_quality")

if __name__ == "__main__":
    demo.launch()
