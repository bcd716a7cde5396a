"""The table of conformance: one line per case. A method without a case, or a case without a card, fails."""

from __future__ import annotations

from fedreuse.testing.cases import AVERAGING, SCORED, Case

TOP_K = {"name": "top_k", "ratio": 0.3}
FEEDBACK = {"name": "error_feedback", "codec": TOP_K}
PROXY = {"name": "proxy", "tau_start": 0.3, "tau_floor": 0.05, "max_age": 3, "batches": 1}
QUANTILE = {"name": "quantile", "max_age": 3, "batches": 1}

QSGD = {"name": "qsgd", "bits": 3, "bucket": 4}
TERNARY = {"name": "ternary", "ratio": 0.3}
RAND_K = {"name": "rand_k", "ratio": 0.3, "unbiased": False}
ECUQ = {"name": "ecuq", "bits": 2.0}
PACKED = {"name": "packed", "codec": TOP_K}
PACKED_DENSE = {"name": "packed", "codec": "dense"}
CONTROLLED = (*AVERAGING, "train down control", "update up control_change")
FINISHED = (*AVERAGING, "finish down model", "finished up")
FETCHING = ("train down correction", "prefetch down anchor", "prefetch up")

CASES = [
    Case("fedavg"),
    Case("fedavg", uplink=TOP_K),
    Case("fedavg", uplink="nonzero"),
    Case("fedavg", uplink=FEEDBACK),
    Case("fedavg", uplink={"name": "error_feedback", "codec": TOP_K, "decay": 0.5}),
    Case("fedavg", uplink=TOP_K, buffers="as_weights"),
    Case("fedavg", downlink="nonzero"),
    Case("fedavg", {"weights": "ht"}),
    Case("fedprox", {"mu": 0.5}),
    Case("fedprox", {"mu": 0.5}, uplink=FEEDBACK),
    Case("fedadam"),
    Case("fedadam", {"v0": 0.0, "bias_correction": True}, uplink=FEEDBACK),
    Case("fedadam", uplink=QSGD),
    Case("fedyogi", uplink=TOP_K),
    Case("fedadagrad", uplink=TOP_K),
    Case("fedavgm", uplink=TOP_K),
    Case("fedavgm", {"nesterov": True}, uplink=TOP_K, buffers="as_weights"),
    Case("scaffold", says=CONTROLLED),
    Case("scaffold", {"option": "I"}, uplink=TOP_K, says=CONTROLLED),
    Case(
        "scaffold", {"controls": "uniform"}, uplink=FEEDBACK, says=CONTROLLED, other_uplinks={"control_change": TOP_K}
    ),
    Case(
        "scaffold", {"momentum": "outside"}, uplink=TOP_K, says=CONTROLLED, other_uplinks={"control_change": FEEDBACK}
    ),
    Case("scaffold", {"wire": "derived"}, uplink=TOP_K, says=(*AVERAGING, "train down control")),
    Case("scaffold", {"wire": "derived"}, uplink=FEEDBACK, says=(*AVERAGING, "train down control")),
    Case("scaffold", {"wire": "derived"}, uplink=QSGD, says=(*AVERAGING, "train down control")),
    Case("ditto", {"pull": 0.5}),
    Case("ditto", {"pull": 0.5}, uplink=TOP_K, buffers="as_weights"),
    Case("ditto", {"pull": 2.0}, uplink=FEEDBACK, downlink={"name": "delta", "codec": TOP_K}),
    Case("dg_fedreuse", {"gate": PROXY}, uplink=TOP_K, says=SCORED),
    Case("dg_fedreuse", {"gate": PROXY}, uplink=TOP_K, buffers="as_weights", says=SCORED),
    Case("dg_fedreuse", {"gate": PROXY}, uplink=FEEDBACK, says=SCORED),
    Case("dg_fedreuse", {"gate": PROXY, "cover_lost": True, "renormalise": True}, says=SCORED),
    Case("dg_fedreuse", {"gate": QUANTILE, "reused": "drop"}, uplink=TOP_K, says=SCORED),
    Case("dg_fedreuse", {"gate": "age_only"}, uplink="nonzero", buffers="as_weights"),
    Case("dg_fedreuse", {"gate": "random"}, uplink=TOP_K),
    Case("dg_fedreuse", {"gate": "always"}),
    Case("dg_fedreuse", {"gate": PROXY}, uplink=QSGD, buffers="as_weights", says=SCORED),
    Case("fedavg", uplink=QSGD),
    Case("fedavg", uplink=TERNARY),
    Case("fedavg", uplink="natural"),
    Case("fedavg", uplink={"name": "rand_k", "ratio": 0.3}),
    Case("fedavg", uplink=ECUQ),
    Case("fedavg", uplink={"name": "error_feedback", "codec": TERNARY}),
    Case("fedavg", uplink={"name": "error_feedback", "codec": RAND_K}),
    Case("fedavg", uplink={"name": "error_feedback", "codec": ECUQ}),
    Case("fedavg", downlink="delta"),
    Case("fedavg", downlink={"name": "delta", "codec": "dense", "arithmetic": "bits"}),
    Case("fedavg", downlink={"name": "delta", "codec": TOP_K}),
    Case("fedavg", downlink={"name": "delta", "codec": QSGD}),
    Case("fedavg", uplink=FEEDBACK, downlink={"name": "delta", "codec": ECUQ}),
    Case("fedavg", uplink=PACKED),
    Case("fedavg", uplink=PACKED, buffers="as_weights"),
    Case("fedavg", uplink=PACKED_DENSE, downlink=PACKED_DENSE),
    Case("fedavg", uplink=PACKED, downlink={"name": "delta", "codec": PACKED_DENSE, "arithmetic": "bits"}),
    Case("fedavg", uplink=PACKED, downlink={"name": "delta", "codec": TOP_K}),
    Case("fedavg", uplink={"name": "error_feedback", "codec": PACKED}),
    Case("fedavg", uplink={"name": "packed", "codec": QSGD}),
    Case("fedavg", uplink={"name": "narrow", "codec": TOP_K, "values": "bf16"}),
    Case("fedavg", uplink={"name": "error_feedback", "codec": {"name": "narrow", "codec": TOP_K, "values": "int4"}}),
    Case("fedavg", uplink={"name": "packed", "codec": {"name": "narrow", "codec": TOP_K, "values": "int8"}}),
    Case("dg_fedreuse", {"gate": PROXY}, uplink=PACKED, buffers="as_weights", says=SCORED),
    Case("scaffold", uplink=PACKED, says=CONTROLLED, other_uplinks={"control_change": PACKED}),
    Case("fedpaq", {"bits": 3, "bucket": 4}),
    Case("fedpaq", {"bits": 2, "bucket": 1, "weights": "ht"}, buffers="as_weights"),
    Case("stc_up", {"ratio": 0.3}),
    Case("stc_updown", {"ratio": 0.3, "server_ratio": 0.3}),
    Case("stc_updown", {"ratio": 0.3, "server_ratio": 0.1, "server_lr": 0.5, "weights": "ht"}),
    Case("docofl", {"anchor_every": 3}, says=(*AVERAGING, *FETCHING)),
    Case("docofl", {"anchor_every": 2, "num_anchors": 1}, uplink=FEEDBACK, says=(*AVERAGING, *FETCHING)),
    Case("docofl", {"anchor": TOP_K, "correction": QSGD}, uplink=QSGD, says=(*AVERAGING, *FETCHING)),
    Case(
        "docofl",
        {"inner": {"name": "dg_fedreuse", "gate": PROXY}, "look_ahead": 1},
        uplink=TOP_K,
        says=(*SCORED, *FETCHING, "score down correction"),
    ),
    Case(
        "docofl",
        {"inner": "scaffold", "anchor_every": 3},
        uplink=TOP_K,
        says=(*AVERAGING, *FETCHING, "train down control", "update up control_change"),
    ),
    Case("lbgm", {"threshold": 0.6}),
    Case("lbgm", {"threshold": 0.6, "granularity": "model", "residual": True}),
    Case("lbgm", {"threshold": 0.6, "codec": TOP_K, "residual": True}),
    Case("lbgm", {"threshold": 0.6, "granularity": "model", "codec": TOP_K}),
    Case("proxskip", {"p": 0.25, "mode": "partial"}, says=FINISHED),
    Case("proxskip", {"p": 0.25, "mode": "partial"}, uplink=TOP_K, says=FINISHED),
    Case("proxskip", {"p": 0.25, "mode": "partial"}, downlink={"name": "delta", "arithmetic": "bits"}, says=FINISHED),
    Case("gradskip", {"p": 0.25, "q": 0.7, "mode": "partial"}, says=FINISHED),
    Case("gradskip", {"p": 0.25, "q": 0.4, "mode": "partial"}, uplink=FEEDBACK, says=FINISHED),
    Case("fedluar"),
    Case("fedluar", uplink=TOP_K),
    Case("fedluar", uplink=FEEDBACK),
    Case("fedluar", {"blocks": 2}),
    Case("fedluar", {"blocks": 2}, uplink=FEEDBACK),
    Case("fedluar", {"blocks": 2}, uplink=TOP_K, buffers="as_weights"),
    Case("fedluar", {"blocks": 2}, uplink={"name": "clag", "codec": TOP_K, "zeta": 3.0}),
    Case("fedvarp"),
    Case("fedvarp", {"weights": "ht"}, uplink=TOP_K),
    Case("fedstale", {"beta": 0.4}, uplink=FEEDBACK),
    Case("fedstale", {"beta": 0.8, "weights": "ht", "server_lr": 0.7}),
    Case("mifa", uplink=FEEDBACK),
    Case("mifa", {"start": "full"}, uplink=TOP_K),
    Case("mifa", {"start": "seen"}),
    Case("fed_ef", {"codec": TOP_K}),
    Case("fed_ef", {"codec": TERNARY, "decay": 0.5, "weights": "ht"}),
    Case("ef21", {"codec": TOP_K}),
    Case("ef21", {"codec": TOP_K, "agg": "all"}),
    Case("ef21", {"codec": TERNARY}),
    Case("ef21", {"codec": QSGD, "agg": "all", "server_lr": 0.5}),
    Case("clag", {"codec": TOP_K, "zeta": 3.0}),
    Case("clag", {"codec": "dense", "zeta": 1.2, "max_lag": None}),
    Case("clag", {"codec": TOP_K, "zeta": 5.0, "max_lag": 2, "agg": "all"}),
    Case("clag", {"codec": TERNARY, "zeta": 3.0}),
    Case("fedavg", uplink={"name": "three_pc", "variant": "v2", "codec": TOP_K, "base": "rand_k"}),
    Case("fedavg", uplink={"name": "three_pc", "variant": "v3", "codec": TOP_K, "base": TOP_K, "zeta": 3.0}),
    Case("fedavg", uplink={"name": "three_pc", "variant": "v4", "codec": TOP_K, "base": QSGD}),
    Case("mifa", uplink={"name": "three_pc", "variant": "v5", "codec": TOP_K, "probability": 0.4}),
    Case("laq"),
    Case("laq", {"bits": 2, "depth": 2, "xi": 5.0, "max_lag": 3, "agg": "all"}),
    Case("movement", {"inner": {"name": "fedprox", "mu": 0.5}, "depth": 3}, uplink={"name": "laq", "bits": 3}),
    Case("movement", {"inner": {"name": "dg_fedreuse", "gate": QUANTILE}}, uplink=TOP_K, says=SCORED),
]
