"""Tickets for printing: a PDF with one page a seat, made on demand, in any script that its fonts know (ADR 0016)."""
