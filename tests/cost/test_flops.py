import numpy as np
import pytest

from autotune.cost.flops import mean_keys, model_flops_per_token, model_flops_utilisation
from autotune.spec.model import ModelSpec
from tests.cost.architectures import GPT_OSS_20B, LLAMA_3_405B, QWEN3_235B
from tests.examples import llama_3_8b, llama_3_70b, problem, qwen3_30b_a3b


@pytest.mark.parametrize(
    ("model", "sequence_length", "published_gflops"),
    [
        # NVIDIA Megatron-Bridge, docs/performance-summary.md: TFLOP/s per GPU over tokens/s per GPU.
        (llama_3_8b(), 8192, 51.47),
        (llama_3_70b(), 8192, 449.2),
        (LLAMA_3_405B, 8192, 2524.0),
        (qwen3_30b_a3b(), 4096, 23.01),
        (QWEN3_235B, 4096, 148.0),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_flops_per_token_are_those_of_nvidias_tables(
    model: ModelSpec, sequence_length: int, published_gflops: float
) -> None:
    assert model_flops_per_token(model, sequence_length) / 1e9 == pytest.approx(published_gflops, rel=5e-4)


def test_head_size_need_not_be_hidden_over_heads() -> None:
    # NVIDIA-NeMo/Automodel#3091: GPT-OSS-20B, one sequence of 4096, is 93.848 TFLOP with head size 64, not 87.641
    # with 2880 / 64 = 45; its layers alternate between full and 128-token windows.
    assert model_flops_per_token(GPT_OSS_20B, 4096) * 4096 / 1e12 == pytest.approx(93.848, abs=0.002)


def test_a_window_limits_the_keys_that_a_query_sees() -> None:
    # Full causal: half of 1024. Window 256: the first 256 queries see 128 on average, the other 768 see 256:
    # (256 * 128 + 768 * 256) / 1024 = 224.
    assert mean_keys(1024) == 512
    assert mean_keys(1024, 256) == 224
    assert mean_keys(1024, 4096) == 512


def test_utilisation_is_the_share_of_the_dense_peak() -> None:
    # 51.47 GFLOP * 8192 tokens * 16 sequences = 6.746e15 over 2 s * 8 GPUs * 989e12 = 1.5824e16: 42.6 %
    question = problem(sequence_length=8192, global_batch_size=16)

    assert model_flops_utilisation(question, np.array([2.0]), 8)[0] == pytest.approx(0.4263, rel=1e-3)
