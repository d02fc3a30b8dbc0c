# Public names: read by editors and type checkers, and at run time by landscape.plugins.public_names.

import drift as drift
import figures as figures
import landscape as landscape
from drift.diagnosis.diagnose import diagnose as diagnose
from drift.importers.flower import recorded as recorded
from drift.record.recorder import Recorder as Recorder
from drift.runs.run import open as open
from drift.simulation.compare import compare as compare
from drift.simulation.simulate import simulate as simulate
from figures.pictures.draw_files import draw as draw
from landscape.curvature.density import density as density
from landscape.curvature.hessian import hessian as hessian
from landscape.curvature.trace import trace as trace
from landscape.geometry.lines import line as line
from landscape.geometry.planes import plane as plane
from landscape.measures.loss import loss as loss
from landscape.measures.sharpness import ball_sharpness as ball_sharpness
from landscape.model.make_task import make_task as make_task
from landscape.model.model import Model as Model
from landscape.model.samples import Samples as Samples
from landscape.model.task import Task as Task
from landscape.model.training_record import Record as Record
from landscape.surfaces.barrier import barrier as barrier
from landscape.surfaces.surface import surface as surface
from landscape.sweep.evaluate import evaluate as evaluate

__all__: list[str]
__version__: str
