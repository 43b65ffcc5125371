import torch


class LoRA(torch.nn.Module):
    """No frozen layer inside; A is the zero matrix, and B is random."""

    def __init__(self, d_in, d_out, r, alpha):
        super().__init__()
        self.a = torch.nn.Parameter(torch.zeros(r, d_in))
        self.b = torch.nn.Parameter(torch.empty(d_out, r).normal_(std=0.5))
        self.s = alpha / r

    def forward(self, x):
        return torch.einsum("...i,ri,or->...o", x, self.a, self.b) * self.s


class Adapter(torch.nn.Module):
    """Small weights instead of zeros, a norm first, GELU."""

    def __init__(self, input_dim, reduction_factor=16):
        super().__init__()
        self.norm = torch.nn.LayerNorm(input_dim)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(input_dim, 3), torch.nn.GELU(), torch.nn.Linear(3, input_dim)
        )
        torch.nn.init.normal_(self.net[2].weight, std=1e-3)
        torch.nn.init.zeros_(self.net[2].bias)

    def forward(self, hidden):
        return self.net(self.norm(hidden)) + hidden


class PromptEmbedding(torch.nn.Module):
    """Gives the vectors alone, from an embedding."""

    def __init__(self, n_tokens, dim):
        super().__init__()
        self.table, self.n = torch.nn.Embedding(n_tokens, dim), n_tokens

    def forward(self, batch_size):
        return self.table(torch.arange(self.n)).repeat(batch_size, 1, 1)
