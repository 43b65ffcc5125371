from torch import nn
from transformers import BertModel, BertPreTrainedModel


class BertForCLSMLM(BertPreTrainedModel):
    """alpha is an argument of forward; both texts have one call each."""

    def __init__(self, config):
        super().__init__(config)
        self.bert = BertModel(config, add_pooling_layer=False)
        self.cls = nn.Linear(config.hidden_size, config.num_labels)
        self.lm = nn.Linear(config.hidden_size, config.vocab_size)
        self.loss = nn.CrossEntropyLoss()
        self.post_init()

    def forward(
        self,
        input_ids,
        attention_mask=None,
        labels=None,
        masked_input_ids=None,
        masked_attention_mask=None,
        masked_lm_labels=None,
        alpha=0.3,
    ):
        logits = self.cls(self.bert(input_ids, attention_mask).last_hidden_state[:, 0])
        if labels is None:
            return {"logits": logits}
        scores = self.lm(self.bert(masked_input_ids, masked_attention_mask).last_hidden_state)
        return {
            "loss": self.loss(logits, labels) + alpha * self.loss(scores.transpose(1, 2), masked_lm_labels),
            "logits": logits,
        }
