"""MemoryEstimate: the parts of the fullest pipeline rank, row by row."""

from dataclasses import dataclass

import numpy as np

from autotune.cost.estimates import MemoryEstimate
from autotune.cost.profile import Factors, MemoryProfile
from autotune.cost.stages import Place
from autotune.cost.states import StateBytes
from autotune.cost.terms import EndTerms, LayerTerms, PlaceTerms
from autotune.spec.cluster import ClusterSpec
from autotune.spec.layout import FloatColumn, IntColumn, LayoutTable


@dataclass(frozen=True, kw_only=True)
class ByPlace:
    """Terms with one row a Place, still by combination. *_inverse: for each layout, its combination."""

    places: PlaceTerms
    places_inverse: IntColumn
    states: StateBytes
    states_inverse: IntColumn


@dataclass(frozen=True, kw_only=True)
class Peak:
    """Activations of one pipeline rank at its peak.

    stored: kept for the micro-batches in flight; rebuilt, working: live while one layer's backward runs; logits: live
    while the loss runs, so before that.
    """

    stored_bytes: FloatColumn
    rebuilt_bytes: FloatColumn
    working_bytes: FloatColumn
    logits_bytes: FloatColumn

    @property
    def total_bytes(self) -> FloatColumn:
        """What is stored, and the larger of the two moments above it."""
        return self.stored_bytes + np.maximum(self.logits_bytes, self.rebuilt_bytes + self.working_bytes)


def memory_estimate(
    layers: tuple[LayerTerms, ...],
    ends: EndTerms,
    by_place: ByPlace,
    outside_bytes: FloatColumn,
    profile: MemoryProfile,
    factors: Factors,
) -> tuple[MemoryEstimate, IntColumn]:
    """The estimate of the fullest rank, and which pipeline rank that is.

    Loss and backward of a layer are two moments. The larger one is the peak: logits are shown whole, and of the other
    only what it needs beyond them.
    """
    place, held = _fullest(layers, ends, by_place)
    peak = peak_at(place, layers, ends, by_place)
    beyond = np.maximum(peak.rebuilt_bytes + peak.working_bytes - peak.logits_bytes, 0.0)
    recompute = np.minimum(peak.rebuilt_bytes, beyond)

    scale, states = factors.memory, by_place.states
    index = place * states.weights_bytes.shape[1] + by_place.states_inverse
    estimate = MemoryEstimate(
        weights_bytes=scale * states.weights_bytes.take(index),
        gradients_bytes=scale * states.gradients_bytes.take(index),
        optimizer_bytes=scale * states.optimizer_bytes.take(index),
        gathered_weights_bytes=scale * states.gathered_weights_bytes.take(index),
        activations_bytes=scale * (peak.stored_bytes + (beyond - recompute)),
        recompute_bytes=scale * recompute,
        logits_bytes=scale * peak.logits_bytes,
        buffers_bytes=scale * (states.buffers_bytes.take(index) + profile.allocator_slack.value * held),
        outside_bytes=outside_bytes,
    )
    places = by_place.places
    rank = places.rank.take(place * places.rank.shape[1] + by_place.places_inverse)
    return estimate, rank.astype(np.int64)


def _fullest(layers: tuple[LayerTerms, ...], ends: EndTerms, by_place: ByPlace) -> tuple[IntColumn, FloatColumn]:
    """The place of the fullest rank, the first of equals, and the framework's bytes there."""
    states = by_place.states.total_bytes
    place = np.zeros(len(by_place.states_inverse), dtype=np.int64)
    most = np.full(len(place), -1.0)
    for candidate in Place:
        here = np.full_like(place, candidate)
        total = states[candidate].take(by_place.states_inverse) + peak_at(here, layers, ends, by_place).total_bytes
        fuller = total > most
        place[fuller] = candidate
        np.maximum(most, total, out=most)
    return place, most


def peak_at(place: IntColumn, layers: tuple[LayerTerms, ...], ends: EndTerms, by_place: ByPlace) -> Peak:
    """Activations of each layout's rank at `place`."""
    places = by_place.places
    index = place * places.in_flight.shape[1] + by_place.places_inverse
    flying = places.in_flight.take(index)
    stored, rebuilt, working = (np.zeros_like(flying) for _ in range(3))
    for kind, layer in enumerate(layers):
        held = flying * places.layers[kind].take(index)
        present = np.minimum(held, 1.0)
        stored += held * layer.stored_bytes
        rebuilt = np.maximum(rebuilt, present * layer.rebuilt_bytes)
        working = np.maximum(working, present * layer.working_bytes)
    logits = places.head.take(index) * ends.logits_bytes
    return Peak(stored_bytes=stored, rebuilt_bytes=rebuilt, working_bytes=working, logits_bytes=logits)


def host_bytes(table: LayoutTable, memory: MemoryEstimate, cluster: ClusterSpec) -> FloatColumn:
    """RAM that the processes of one node need beyond the operating system.

    GPUs: each process stages its own share of the weights while it loads or saves a checkpoint; loaders, the
    interpreter and full copies of the model made by naive loading are not in it. CPU processes: all they hold.
    """
    processes = np.minimum(cluster.gpus_per_node, table.gpus)
    if cluster.gpu.device == "cpu":
        return processes * memory.peak_bytes
    return processes * memory.weights_bytes
