"""Classifiers as ONNX graphs, which ONNX Runtime computes without torch.

model.onnx       the graph: ids and masks of any number of texts of any length, to one logit per class
tokenizer.json   the tokenizer
onnx.json        labels, lengths, the run that the model is from, and what was measured
words/           the linear model of words whose logits are added, where the head has one
"""
