"""Does top-down SMC do as Lakshminarayanan, Roy and Teh (2013) and the thesis (chapter 3) report?

The thesis gives figures, no numbers; what it says of them is quoted in the tables' headings. Files
in reading order: `data`; `fits` one run of SMC, of CGM, of scikit-learn's trees; `plan` which runs
there are; `tables`, `pictures`; `__main__` the command.
"""
