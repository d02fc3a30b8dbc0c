"""Tables of settings in which true and false are no numbers."""

from typing import Any, get_args

from pydantic import BaseModel, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError


class StrictNumbers(BaseModel):
    """A table of settings that refuses true and false for a number, which would otherwise be read as 1 and 0."""

    @field_validator("*", mode="before")
    @classmethod
    def _no_boolean_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        types = _types(cls.model_fields[str(info.field_name)].annotation)
        values = value if isinstance(value, list | tuple) else [value]
        if not {bool, Any} & types and any(isinstance(item, bool) for item in values):
            if float in types:
                raise PydanticCustomError("float_type", "a boolean for a number")
            if int in types:
                raise PydanticCustomError("int_type", "a boolean for a number")
        return value


def _types(annotation: Any) -> set[Any]:
    """The types that an annotation consists of, such as float and None of `float | None`."""
    return {annotation}.union(*map(_types, get_args(annotation))) if get_args(annotation) else {annotation}
