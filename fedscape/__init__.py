"""The one name to import: `import fedscape as fs` gives `fs.landscape`, `fs.drift`, `fs.figures` and common functions.

The three packages are folders of their own beside this one. Nothing is loaded before its first use, and no torch by
`import fedscape`. A module of another project or of the user that hides one of the three is refused at that first use.
"""

from fedscape import packages as _packages

if _packages.foreign():

    def __getattr__(name: str) -> object:
        _packages.require_ours()
        raise AttributeError(f"module 'fedscape' has no attribute {name!r}")
else:
    from landscape.plugins import public_names as _public_names

    __all__ = _public_names.lazy(__name__)
