"""The reference workload is the one of the documents."""

from __future__ import annotations

from fedreuse.lab.bench.workload import WORKLOADS, configure


def test_the_reference_is_the_papers_setting() -> None:
    plain = configure("reference", 7).to_plain()
    assert (plain["task"]["name"], plain["task"]["clients"], plain["task"]["partition"]["alpha"]) == (
        "fashion_mnist",
        50,
        0.5,
    )
    assert (plain["local"]["epochs"], plain["local"]["batch"]) == (3, 128)
    sgd = plain["local"]["optimizer"]
    assert (sgd["lr"], sgd["momentum"], sgd["weight_decay"]) == (0.05, 0.9, 1e-4)
    assert plain["uplink"]["update"]["codec"] == {"name": "top_k", "ratio": 0.2}
    assert (plain["rounds"]["cohort"], plain["rounds"]["count"], plain["rounds"]["evaluate_every"]) == (10, 7, 7)


def test_every_workload_is_a_configuration() -> None:
    assert {configure(name, 2, ["executor=serial"]).to_plain()["network"]["name"] for name in WORKLOADS} == {
        "cnn",
        "resnet18",
    }
