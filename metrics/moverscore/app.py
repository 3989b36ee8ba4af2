"""The page of this metric's Space."""

from movers.serve import metric_page

demo = metric_page("moverscore")

if __name__ == "__main__":
    demo.launch()
