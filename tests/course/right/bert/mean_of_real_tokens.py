import torch
from torch import nn
from transformers import AutoModel


class TextClassifier(nn.Module):
    """A name for from_pretrained, the mean over real tokens, a dictionary."""

    def __init__(self, model_name_or_path, num_classes):
        super().__init__()
        self.backbone = AutoModel.from_pretrained(model_name_or_path)
        hidden = self.backbone.config.hidden_size
        self.head = nn.Sequential(
            nn.Dropout(0.1), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, num_classes)
        )

    def forward(self, input_ids, attention_mask, labels=None):
        states = self.backbone(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weights = attention_mask.float() / attention_mask.sum(dim=1, keepdim=True)
        logits = self.head(torch.einsum("btd,bt->bd", states, weights))
        loss = None if labels is None else nn.functional.nll_loss(logits.log_softmax(-1), labels)
        return {"logits": logits, "loss": loss}
