from torch.nn import functional as F

from heedful.attention import Mask
from heedful.models import PRESETS
from heedful.models import blocks
from heedful.models.bodies import Decoder
from heedful.models.heads import LanguageModel


def read(vocab_size, n_embd, n_head, n_layer, block_size):
    return PRESETS["gpt-nano"].config.replace(
        vocab_size=vocab_size,
        d_model=n_embd,
        n_heads=n_head,
        d_head=0,
        n_layers=n_layer,
        d_ff=4 * n_embd,
        max_len=block_size,
    )


class Block(blocks.Block):
    """The package's own block and decoder."""

    def __init__(self, n_embd, n_head):
        super().__init__(read(29, n_embd, n_head, 1, 64), causal=True, cross=False)

    def forward(self, x):
        return super().forward(x, Mask(causal=True))


class GPT(LanguageModel):
    def __init__(self, vocab_size, n_embd, n_head, n_layer, block_size):
        super().__init__(Decoder(read(vocab_size, n_embd, n_head, n_layer, block_size)), "causal")

    def forward(self, idx, targets=None):
        logits = super().forward(idx)
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
