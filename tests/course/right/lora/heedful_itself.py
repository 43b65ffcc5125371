from heedful.methods import lora


class LoRALinear(lora.LoRALinear):
    """The package's own layer; a method freezes the rest."""

    def __init__(self, linear, rank, alpha, dropout):
        super().__init__(linear, rank, alpha / rank, dropout)
        self.weight.requires_grad_(False)
        self.bias.requires_grad_(False)

    def merge(self):
        return self.plain()
