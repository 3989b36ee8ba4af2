"""The page of this metric's Space."""

from movers.serve import launch, metric_page

demo = metric_page("swms")

if __name__ == "__main__":
    launch(demo)
