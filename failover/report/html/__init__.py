"""Reports as one self-contained HTML file each: a plan, or an execution with its plan."""

from failover.report.html.execution_page import execution_html
from failover.report.html.plan_page import plan_html

__all__ = ["execution_html", "plan_html"]
