"""Models by name: the catalogue, and the files its entries stand for."""

from engine.catalogue.files import generator_file, verifier_file
from engine.catalogue.reading import load
from engine.catalogue.schema import Catalogue, Entry, Preset, Role

__all__ = ["Catalogue", "Entry", "Preset", "Role", "generator_file", "load", "verifier_file"]
