# Public names: read by editors and type checkers, and at run time by landscape.plugins.public_names.

from landscape.curvature.density import density as density
from landscape.curvature.hessian import hessian as hessian
from landscape.curvature.hessian import top_eigenvalues as top_eigenvalues
from landscape.curvature.layer_blocks import layer_eigenvalues as layer_eigenvalues
from landscape.curvature.minibatch_sharpness import minibatch_sharpness as minibatch_sharpness
from landscape.curvature.ntk import ntk as ntk
from landscape.curvature.trace import trace as trace
from landscape.datasets import open_dataset as open_dataset
from landscape.geometry.alignment import align as align
from landscape.geometry.curves import Curve as Curve
from landscape.geometry.curves import along as along
from landscape.geometry.curves import connecting_curve as connecting_curve
from landscape.geometry.directions import random_directions as random_directions
from landscape.geometry.directions import random_plane as random_plane
from landscape.geometry.directions import slice_along as slice_along
from landscape.geometry.lines import line as line
from landscape.geometry.planes import plane as plane
from landscape.geometry.planes import project as project
from landscape.geometry.scaling import scaling as scaling
from landscape.geometry.simplex import simplex as simplex
from landscape.geometry.trajectory import principal_plane as principal_plane
from landscape.measures.cost import step_cost as step_cost
from landscape.measures.robustness import noise_robustness as noise_robustness
from landscape.measures.sharpness import ball_sharpness as ball_sharpness
from landscape.model.layout import Layout as Layout
from landscape.model.make_task import make_task as make_task
from landscape.model.make_task import task_from as task_from
from landscape.model.samples import Samples as Samples
from landscape.model.task import Task as Task
from landscape.models import build_model as build_model
from landscape.record import Record as Record
from landscape.surfaces.aligned_barrier import aligned_barrier as aligned_barrier
from landscape.surfaces.barrier import barrier as barrier
from landscape.surfaces.barrier import pairwise_barriers as pairwise_barriers
from landscape.surfaces.barrier import simplex_losses as simplex_losses
from landscape.surfaces.basin import basin as basin
from landscape.surfaces.interpolated_surface import interpolated_surface as interpolated_surface
from landscape.surfaces.merge_tree import merge_tree as merge_tree
from landscape.surfaces.passes import passes as passes
from landscape.surfaces.persistence import persistence as persistence
from landscape.surfaces.sampled_surface import sampled_surface as sampled_surface
from landscape.surfaces.surface import surface as surface
from landscape.surfaces.surface_distances import surface_distances as surface_distances
from landscape.sweep.evaluate import evaluate as evaluate

__all__: list[str]
