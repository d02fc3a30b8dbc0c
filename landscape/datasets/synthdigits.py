"""SynthDigits, 479,400 + 9,553 digits rendered in Windows fonts, 32x32 colour (Ganin and Lempitsky 2015).

Not on the hub. The 25,000 + 9,000 images of Digit-Five (Peng et al. 2019) are accepted too. The default scaling "half"
is that of the IMA paper.
"""

from __future__ import annotations

from landscape.datasets._images import Source, loader

SOURCE = Source(
    name="synthdigits",
    repository="",
    shape=(3, 32, 32),
    classes=tuple("0123456789"),
    train=479_400,
    test=9_553,
    scale="half",
    smaller=((25_000, 9_000),),
    advice=(
        "Write the authors' synth_train_32x32.mat and synth_test_32x32.mat (or Digit-Five's syn_number.mat) as Parquet "
        "files with the columns image (32x32 RGB, an `Image` of the package datasets) and label (0 to 9)."
    ),
)

load = loader(SOURCE)
