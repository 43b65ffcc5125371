from torch import nn
from transformers import BertModel, BertPreTrainedModel


class BertForSequenceClassification(BertPreTrainedModel):
    """The course's own form: a class of transformers, built from a configuration, with the pooler."""

    def __init__(self, config):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.bert = BertModel(config)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        token_type_ids=None,
        position_ids=None,
        head_mask=None,
        labels=None,
    ):
        outputs = self.bert(
            input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids, position_ids=position_ids
        )
        logits = self.classifier(self.dropout(outputs[1]))
        outputs = (logits,)
        if labels is not None:
            loss = nn.CrossEntropyLoss()(logits.view(-1, self.num_labels), labels.view(-1))
            outputs = (loss, *outputs)
        return outputs


class BertForMaskedLanguageModel(BertPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.bert = BertModel(config, add_pooling_layer=False)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        self.post_init()

    def forward(self, input_ids=None, attention_mask=None, labels=None):
        prediction_scores = self.lm_head(
            self.bert(input_ids, attention_mask=attention_mask).last_hidden_state
        )
        if labels is None:
            return (prediction_scores,)
        loss = nn.CrossEntropyLoss()(prediction_scores.view(-1, self.config.vocab_size), labels.view(-1))
        return loss, prediction_scores
