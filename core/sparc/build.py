"""A set of agents from what is there: a language model, or rules and the reader.

Decides that a language model, where there is one, fills every role. Knows nothing of where models come from.
"""

from __future__ import annotations

from core.answer.protocol import Reader
from core.llm.protocol import Llm
from core.sparc.agents import Agents
from core.sparc.events import SparcConfig
from core.sparc.llm_agents import llm_agents
from core.sparc.rules import rule_agents


def build_agents(llm: Llm | None, reader: Reader, config: SparcConfig | None = None) -> Agents:
    """Agents for runs of a configuration; it decides how many chunks the rules' memory holds."""
    return rule_agents(reader, (config or SparcConfig()).k) if llm is None else llm_agents(llm)
