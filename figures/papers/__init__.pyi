# Public names: read by editors and type checkers, and at run time by landscape.plugins.public_names.

from figures.papers.catalogue import Item as Item
from figures.papers.catalogue import Number as Number
from figures.papers.catalogue import Paper as Paper
from figures.papers.catalogue import PaperSetting as PaperSetting
from figures.papers.catalogue import load as load
from figures.papers.catalogue import names as names
from figures.papers.needed import SettingRuns as SettingRuns
from figures.papers.needed import commands as commands
from figures.papers.needed import match_runs as match_runs
from figures.papers.needed import reservation as reservation
from figures.papers.needed import setting_of as setting_of
from figures.papers.needed import stand_ins as stand_ins

__all__: list[str]
