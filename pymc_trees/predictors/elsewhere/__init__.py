"""How does a predictor run where there is no Python: in ONNX runtimes, in databases, from JSON?

`asked` (what is asked for, as an instruction of the program; splits and leaves in plain terms),
`tensors` (arrays that write themselves down as nodes of ONNX) and `onnx_model`, `sql`, `methods`
(JSON, and the methods of `Predictor`).

May import: the rest of `predictors`; onnx, in a function.
"""
