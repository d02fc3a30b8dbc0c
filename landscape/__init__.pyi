# Public names: read by editors and type checkers, and at run time by landscape.plugins.lazy.

from landscape.adaptive import adaptive_surface as adaptive_surface
from landscape.affine import evaluate as evaluate
from landscape.aligned_barrier import aligned_barrier as aligned_barrier
from landscape.alignment import align as align
from landscape.barrier import barrier as barrier
from landscape.barrier import pairwise_barriers as pairwise_barriers
from landscape.barrier import simplex_losses as simplex_losses
from landscape.basin import basin as basin
from landscape.blocks import layer_eigenvalues as layer_eigenvalues
from landscape.cost import step_cost as step_cost
from landscape.curves import Curve as Curve
from landscape.curves import along as along
from landscape.curves import connecting_curve as connecting_curve
from landscape.datasets import open_dataset as open_dataset
from landscape.density import density as density
from landscape.directions import random_plane as random_plane
from landscape.directions import slice_along as slice_along
from landscape.hessian import top_eigenvalues as top_eigenvalues
from landscape.layout import Layout as Layout
from landscape.lines import line as line
from landscape.minibatch import minibatch_sharpness as minibatch_sharpness
from landscape.models import build_model as build_model
from landscape.ntk import ntk as ntk
from landscape.planes import plane as plane
from landscape.planes import project as project
from landscape.robustness import noise_robustness as noise_robustness
from landscape.samples import Samples as Samples
from landscape.scaling import scaling as scaling
from landscape.sharpness import ball_sharpness as ball_sharpness
from landscape.simplex import simplex as simplex
from landscape.surface import surface as surface
from landscape.task import Task as Task
from landscape.trace import trace as trace
from landscape.trajectory import principal_plane as principal_plane

__all__: list[str]
