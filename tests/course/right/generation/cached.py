import torch


@torch.inference_mode()
def generate(model, input_ids, max_new_tokens=20, use_cache=True, eos_token_id=None, pad_token_id=0):
    """Greedy, in the form of transformers: a cache until the context is full, padding after the stop."""
    alive = input_ids.new_ones(len(input_ids))
    past, step = None, input_ids[:, -model.config.n_positions :]
    for _ in range(max_new_tokens):
        out = model(step, past_key_values=past, use_cache=use_cache)
        token = out.logits[:, -1].argmax(-1)
        if eos_token_id is not None:
            token = token * alive + pad_token_id * (1 - alive)
            alive = alive * (token != eos_token_id).long()
        input_ids = torch.cat([input_ids, token[:, None]], -1)
        if alive.max() == 0:
            break
        full = input_ids.size(1) > model.config.n_positions
        past = out.past_key_values if use_cache and not full else None
        step = token[:, None] if past is not None else input_ids[:, -model.config.n_positions :]
    return input_ids
