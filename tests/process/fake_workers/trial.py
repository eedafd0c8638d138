"""A trial to ask for."""

from autotune.spec.layout import Layout
from autotune.spec.model import ModelSpec
from autotune.spec.outcome import TrialSpec
from autotune.spec.workload import WorkloadSpec


def trial(*, processes: int) -> TrialSpec:
    """Of a model that fake workers never build."""
    model = ModelSpec(
        name="tiny", architecture="LlamaForCausalLM", hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, intermediate_size=64, vocab_size=128,
    )  # fmt: skip
    return TrialSpec(
        layout=Layout(tp=processes),
        model=model,
        workload=WorkloadSpec(sequence_length=16, global_batch_size=4, precision="fp32"),
        device="cpu",
        processes_per_node=processes,
    )
