import torch


def combined_loss(logits, targets, mlm_scores, mlm_targets, mlm_weight):
    """The labeled tokens are selected; logarithms of the softmax by hand."""

    def nll(scores, gold):
        return -scores.log_softmax(-1)[torch.arange(len(gold)), gold].mean()

    chosen = mlm_targets != -100
    loss = nll(logits, targets)
    if chosen.any():
        loss = loss + mlm_weight * nll(mlm_scores[chosen], mlm_targets[chosen])
    return loss, {"cls": loss}
