"""SAL, the semantic assertion language: rules for minutes in a file that anybody can read.

rules = load_rules(text, "house rules")
checker = Checker(rules, Document.of(minutes))
for violation in checker.check("final"): ...
"""

from .checker import Checker as Checker
from .checker import Violation as Violation
from .decisions import Decision as Decision
from .decisions import decide as decide
from .decisions import settle as settle
from .document import Document as Document
from .document import MeetingFacts as MeetingFacts
from .mistakes import Mistake as Mistake
from .mistakes import RuleError as RuleError
from .ruleset import Rule as Rule
from .ruleset import RuleSet as RuleSet
from .ruleset import load_rules as load_rules
