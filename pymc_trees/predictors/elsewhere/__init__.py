"""How does a predictor run where there is no Python: in ONNX runtimes, in databases, from JSON?

`asked` (what is asked for, as an instruction of the program), `trees` (splits and leaves in plain
terms), `tensors` (arrays that write themselves down as nodes of ONNX), `onnx_trees` and
`onnx_model`, `sql_words` (dialects) and `sql`, `json_text`, `methods` (the methods of `Predictor`).

May import: the rest of `predictors`; onnx, in a function.
"""
