"""fedreuse: federated learning with cached-update reuse, its closest relatives, and byte accounting on what is sent.

from fedreuse import load, run
directory = run(load("config.yaml"))
directory.summary, directory.metric("validation_score"), directory.traffic()

The public names stand in `__init__.pyi`, in groups. Each is imported when it is first used; the core needs no torch.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
