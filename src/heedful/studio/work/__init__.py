"""What pages compute: functions that run in the worker process, one module per page.

Each has the signature `function(params, models, report)`: the JSON object that the page sent, the loaded
models (`heedful.studio.model_store.ModelStore`), and what reports progress as a share and a few words. It
returns a JSON object or bytes.
"""
