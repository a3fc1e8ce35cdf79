"""Models by name: the catalogue, and the files its entries stand for."""

from engine.catalogue.files import find, generator_file, locate, verifier_file
from engine.catalogue.reading import load
from engine.catalogue.schema import ROLES, Catalogue, Entry, Preset, Role
from engine.catalogue.sources import Local, OnHub, Package, Seedling, ToConvert, source

__all__ = [
    "ROLES",
    "Catalogue",
    "Entry",
    "Local",
    "OnHub",
    "Package",
    "Preset",
    "Role",
    "Seedling",
    "ToConvert",
    "find",
    "generator_file",
    "load",
    "locate",
    "source",
    "verifier_file",
]
