"""Reports: one self-contained HTML file that opens offline, in English and Chinese."""

from aliquot.interfaces.reports.report import render_report, write_report

__all__ = ["render_report", "write_report"]
