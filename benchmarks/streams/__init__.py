"""Mondrian forests with a window beside the adaptive forests of river, on streams that drift."""
