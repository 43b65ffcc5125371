import torch


def mask_tokens(input_ids, mask_token_id, vocab_size, special_tokens_mask, mlm_probability=0.15):
    """One uniform number decides about each token."""
    u = torch.rand(input_ids.shape).masked_fill(special_tokens_mask.bool(), 1.0)
    labels = torch.where(u < mlm_probability, input_ids, torch.full_like(input_ids, -100))
    out = torch.where(u < 0.8 * mlm_probability, torch.full_like(input_ids, mask_token_id), input_ids)
    random = (u >= 0.8 * mlm_probability) & (u < 0.9 * mlm_probability)
    return {
        "input_ids": torch.where(random, torch.randint_like(input_ids, vocab_size), out),
        "labels": labels,
    }
