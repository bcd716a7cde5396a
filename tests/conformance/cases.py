"""The table of conformance: one line per case. A method without a case, or a case without a card, fails."""

from __future__ import annotations

from fedreuse.testing.cases import SCORED, Case

TOP_K = {"name": "top_k", "ratio": 0.3}
FEEDBACK = {"name": "error_feedback", "codec": TOP_K}
PROXY = {"name": "proxy", "tau_start": 0.3, "tau_floor": 0.05, "max_age": 3, "batches": 1}
QUANTILE = {"name": "quantile", "max_age": 3, "batches": 1}

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
    Case("dg_fedreuse", {"gate": PROXY}, uplink=TOP_K, says=SCORED),
    Case("dg_fedreuse", {"gate": PROXY}, uplink=TOP_K, buffers="as_weights", says=SCORED),
    Case("dg_fedreuse", {"gate": PROXY}, uplink=FEEDBACK, says=SCORED),
    Case("dg_fedreuse", {"gate": PROXY, "cover_lost": True, "renormalise": True}, says=SCORED),
    Case("dg_fedreuse", {"gate": QUANTILE, "reused": "drop"}, uplink=TOP_K, says=SCORED),
    Case("dg_fedreuse", {"gate": "age_only"}, uplink="nonzero", buffers="as_weights"),
    Case("dg_fedreuse", {"gate": "random"}, uplink=TOP_K),
    Case("dg_fedreuse", {"gate": "always"}),
]
