"""Self-critical training in a plain PyTorch loop: a tiny model learns to copy its prompt.

    python examples/self_critical_loop.py

The reward is computed on the model's own embeddings; for a reward on texts use
`movers.rewards.reward("sms").score(texts, references)`. The relevant lines are marked with arrows.
"""

from __future__ import annotations

import sys

import torch

from movers.rewards import embedding_reward, likelihood_loss, mixed_loss, self_critical_loss, token_log_probs


def main(steps: int = 60) -> None:
    from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    words, end, size, length = 20, 0, 16, 3
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=words, n_embd=32, n_layer=1, n_head=2, n_positions=16, bos_token_id=end, eos_token_id=end)
    )
    greedy = GenerationConfig(max_new_tokens=length, pad_token_id=end, eos_token_id=end)
    random = GenerationConfig(max_new_tokens=length, pad_token_id=end, eos_token_id=end, do_sample=True, top_k=0)
    reward = embedding_reward(model, "hungarian")  # <- F_disc on the lowest layer
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)

    def log_probs(prompts: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
        logits = model(torch.cat([prompts, outputs], dim=1)).logits[:, length - 1 : -1]
        return token_log_probs(logits, outputs)

    def generate(prompts: torch.Tensor, way: GenerationConfig) -> torch.Tensor:
        seen = torch.ones_like(prompts)
        return model.generate(prompts, attention_mask=seen, generation_config=way)[:, length:]

    for step in range(steps):
        prompts = torch.randint(1, words, (size, length))
        model.eval()
        sampled, best = (generate(prompts, way) for way in (random, greedy))
        model.train()
        sampled_reward, greedy_reward = (reward.score_ids(outputs, prompts) for outputs in (sampled, best))
        mask = (sampled == end).cumsum(1) <= (sampled == end)  # up to and including the first end token
        loss = mixed_loss(
            self_critical_loss(log_probs(prompts, sampled), mask, sampled_reward, greedy_reward),  # <- Clark Eq. 7
            likelihood_loss(log_probs(prompts, prompts), torch.ones_like(prompts)),
            weight=0.3,  # <- Jin & Gildea's λ
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 10 == 0 or step == steps - 1:
            print(f"step {step}: reward of greedy outputs {float(greedy_reward.mean()):.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
