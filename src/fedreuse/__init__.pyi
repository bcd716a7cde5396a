# Train a model on data
from .studies.federate import federate as federate

# Configure, run and read
from .config.run_config import RunConfig as RunConfig
from .config.run_config import load as load
from .runs.launch import run as run
from .runs.unsealing import unseal as unseal
from .runs.keeping import go_back as go_back
from .store.directory import RunDirectory as RunDirectory
from .store.directory import find_runs as find_runs
from .core.listener import Listener as Listener
from .core.events import Stop as Stop

# Compare
from .studies.study import Study as Study
from .studies.study import load_study as load_study
from .studies.running import run_study as run_study

# What a configuration can name
from .config.catalog import describe as describe
from .config.catalog import registries as registries
from .core.registry import Registry as Registry

# Write a method
from .core.method import MethodConfig as MethodConfig
from .core.method import ServerHalf as ServerHalf
from .core.method import ClientHalf as ClientHalf
from .core.local_trainer import LocalTrainer as LocalTrainer
from .core.message import Message as Message
from .core.message import Answer as Answer
from .core.message import Event as Event
from .core.message import Events as Events
from .core.cohort import Cohort as Cohort
from .core.population import Population as Population
from .core.needs import Needs as Needs
from .core.values import value as value

# Write a part of one
from .core.method import Link as Link
from .core.method import LinkContext as LinkContext
from .compression.codecs.codec import Codec as Codec
from .methods.gates.gate import Gate as Gate
from .methods.aggregators.aggregator import Aggregator as Aggregator
from .methods.server_steps.server_step import ServerStep as ServerStep
from .learning.metrics.metric import Metric as Metric

# Tensors
from .core.tensors import Tensors as Tensors
from .core.model import Model as Model
from .core.schema import Schema as Schema
from .core.schema import TensorSpec as TensorSpec

# Compress the messages of your own loop
from .channel.server_channel import ServerChannel as ServerChannel
from .channel.client_channel import ClientChannel as ClientChannel

# Errors
from .core.errors import FedreuseError as FedreuseError
from .core.errors import UserError as UserError
from .core.errors import ConfigError as ConfigError
from .core.errors import RunError as RunError

__version__: str
