"""SQL expressions over columns, in Spark's dialect and with its meaning: `expr`."""

from .expression import SqlExpression, expr

__all__ = ["SqlExpression", "expr"]
