"""Source of an image dataset (a folder or the Hugging Face hub) and the content that it must have."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from landscape.model.samples import Samples
from landscape.results.parsed_text import from_toml

Files = dict[str, list[Path]]
"""Parquet files by split name."""


@dataclass(frozen=True)
class Source:
    """Source of an image dataset and the content that it must have.

    Args:
        name: Public name; also the name of its sub-folder in a data folder.
        repository: Name on the Hugging Face hub; empty where it is not there.
        shape: (channels, height, width) of one image; 1 channel is grey, 3 are RGB.
        classes: Class names in label order, or their number if the files name them.
        train, test: Number of images in each split; without test images there is no such file.
        scale, mean, std: See `Dataset`.
        label: Column of the labels.
        groups: Column of each further label; whole numbers, class labels or text.
        group_names: Names of their values in order; else as the files name them, or sorted text.
        smaller: Accepted numbers of train and test images of smaller copies.
        inside: Folder of the Parquet files in the repository.
        fit: What happens to images of another size: "exact" refuses; "squash" resizes; "crop" resizes the shorter side
            to 8/7 of the height (256 for 224) and cuts out the centre.
        advice: How to get files that are not on the hub.
        labels_digest: Of the published labels in their order, by `labels_digest`; empty if unknown.
        digest: Fingerprint of all published tensors; empty if unknown.
    """

    name: str
    repository: str
    shape: tuple[int, int, int]
    classes: tuple[str, ...] | int
    train: int
    test: int
    scale: str = "unit"
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    label: str = "label"
    groups: Mapping[str, str] = field(default_factory=dict)
    group_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    smaller: tuple[tuple[int, int], ...] = ()
    inside: str = ""
    fit: Literal["exact", "squash", "crop"] = "exact"
    advice: str = ""
    labels_digest: str = ""
    digest: str = ""

    @property
    def splits(self) -> tuple[str, ...]:
        """Splits that have files."""
        return ("train", "test") if self.test else ("train",)

    @property
    def counts(self) -> tuple[tuple[int, int], ...]:
        """Accepted numbers of train and test images, the published ones first."""
        return ((self.train, self.test), *self.smaller)


def read_source(name: str) -> Source:
    """What `sources/NAME.toml` states of an image dataset.

    Raises:
        ValueError: If the file is wrong: which entry is unknown or missing.
    """
    path = Path(__file__).parent / "sources" / f"{name}.toml"
    try:
        return Source(name=name, **_frozen(from_toml(path.read_bytes())))
    except (TypeError, ValueError) as problem:
        raise ValueError(f"{path}: {problem}") from None


def _frozen(value: Any) -> Any:
    """A value of TOML with tuples in place of lists."""
    if isinstance(value, dict):
        return {key: _frozen(inner) for key, inner in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def find_files(source: Source, folder: Path) -> Files:
    """The Parquet files in a folder and below.

    Raises:
        LookupError: If a split has none.
    """
    root = folder / source.inside if source.inside and (folder / source.inside).is_dir() else folder
    files = {split: sorted(root.rglob(f"{split}*.parquet")) for split in source.splits}
    if absent := [split for split in source.splits if not files[split]]:
        how = (
            f"Put the Parquet files of {source.repository} there, or give another folder with one sub-folder a dataset "
            "(--data DIR or FEDSCAPE_DATA=DIR), or give none to fetch them from the Hugging Face hub."
            if source.repository
            else f"{source.advice} Put them there, or give another folder with one sub-folder a dataset "
            "(--data DIR or FEDSCAPE_DATA=DIR)."
        )
        raise LookupError(f"no {absent[0]}*.parquet of {source.name} in {folder}. {how}")
    return files


def download(source: Source) -> Files:
    """The Parquet files from the hub, through its cache.

    Raises:
        LookupError: If they are not on the hub, or it does not answer, or its package is absent.
    """
    needed = " and ".join(f"{source.name}/{split}*.parquet" for split in source.splits)
    if not source.repository:
        raise LookupError(
            f"{source.name} is not on the Hugging Face hub. {source.advice} Give a folder that holds {needed}: "
            "--data DIR or FEDSCAPE_DATA=DIR."
        )
    require(source, "huggingface_hub", "httpx")
    import httpx
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    begin = f"{source.inside}/" if source.inside else "*"
    patterns = [f"{begin}{split}*.parquet" for split in source.splits]
    try:
        folder = snapshot_download(source.repository, repo_type="dataset", allow_patterns=patterns, etag_timeout=5)
    except (OSError, HfHubHTTPError, httpx.HTTPError) as reason:
        raise LookupError(
            f"{source.name} was looked for on the Hugging Face hub ({source.repository}), which did not answer "
            f"({type(reason.__cause__ or reason).__name__}). Give a folder that holds {needed}: --data DIR or "
            "FEDSCAPE_DATA=DIR."
        ) from reason
    return find_files(source, Path(folder))


def key(source: Source, files: Files | None) -> str:
    """Twelve hexadecimal digits that depend on the files, or on the repository if there is no folder."""
    words = [source.repository] if files is None else []
    if source.fit != "exact":
        words.append(f"{source.fit} {source.shape}")
    for split, paths in (files or {}).items():
        for path in paths:
            facts = path.stat()
            words.append(f"{split} {path.name} {facts.st_size} {facts.st_mtime_ns}")
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]


def require(source: Source, *packages: str) -> None:
    """Require the packages that read the files.

    Raises:
        LookupError: Naming the extra that brings them.
    """
    from importlib import import_module

    for package in packages:
        try:
            import_module(package)
        except ModuleNotFoundError as reason:
            raise LookupError(
                f"{source.name} is read with the package {reason.name!r}, which is not installed; "
                'install it with pip install "fedscape[data]".'
            ) from reason


def difference(source: Source, train: Samples, test: Samples, fingerprint: str) -> str:
    """Difference from the published dataset, as the end of a sentence; empty if there is none or it is unknown.

    Of sets without digests (cifar100, mnist_m, pacs, svhn, synthdigits, femnist, domainnet) only the numbers of samples
    and classes are checked.

    Args:
        source: A copy of another size than it states is not compared.
        fingerprint: Of train and test.
    """
    if not source.labels_digest or (len(train), len(test)) != (source.train, source.test):
        return ""
    if (digest := labels_digest(train, test)) != source.labels_digest:
        return f"other labels, or another order of them (digest {digest}, published {source.labels_digest})"
    if source.digest and fingerprint != source.digest:
        return f"other pixels (fingerprint {fingerprint}, published {source.digest})"
    return ""


def labels_digest(train: Samples, test: Samples) -> str:
    """First 16 hexadecimal digits of the SHA-256 of all labels, one byte each, those for training first."""
    digest = hashlib.sha256()
    for samples in (train, test):
        digest.update(samples.targets.numpy().astype("uint8").tobytes())
    return digest.hexdigest()[:16]
