"""A small web server: a trained model behind `POST /predict`, on this machine unless told otherwise.

`serving.serve_model` is what `heedful serve` calls. The parts that any web application of Heedful needs are
apart from the model: `guard` (token, host and origin), `errors` (JSON errors of one form) and `listening`
(socket and signals).
"""
