"""The verb `live`: options, loop, screen."""

from kwsniff.cli.live.command import add_parser

__all__ = ["add_parser"]
