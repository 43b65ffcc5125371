import torch

from heedful.inference.generation import Sampling, pick_tokens


@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, do_sample=False, top_k=None, top_p=None):
    """The package's own choice of tokens."""
    sampling = Sampling(temperature=temperature if do_sample else 0.0, top_k=top_k, top_p=top_p)
    for _ in range(max_new_tokens):
        logits = model(ids[:, -model.block_size :])[0]
        ids = torch.cat([ids, pick_tokens(logits[:, -1], torch.rand(len(ids)), sampling)[:, None]], 1)
    return ids
