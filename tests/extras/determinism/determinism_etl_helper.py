"""A user's module about places."""

from __future__ import annotations

import math
from dataclasses import dataclass

EARTH = 6371.0088
_DIGITS = "0123456789bcdefghjkmnpqrstuvwxyz"


@dataclass(frozen=True)
class Box:
    south: float
    west: float
    north: float
    east: float

    def contains(self, lat: float, lon: float) -> bool:
        return self.south <= lat < self.north and self.west <= lon < self.east

    @property
    def width(self) -> float:
        return self.east - self.west

    @staticmethod
    def world() -> Box:
        return Box(-90, -180, 90, 180)


ZONES = {"berlin": Box(52.3, 13.0, 52.7, 13.8)}


def haversine(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    a = math.sin(math.radians(lat2 - lat1) / 2) ** 2
    a += math.cos(math.radians(lat1)) * math.cos(math.radians(lat2)) * math.sin(math.radians(lon2 - lon1) / 2) ** 2
    return 2 * EARTH * math.asin(math.sqrt(a))


def geohash(lat: float, lon: float, length: int) -> str:
    lats, lons = [-90.0, 90.0], [-180.0, 180.0]
    bits, found, even = 0, "", True
    for number in range(length * 5):
        span, value = (lons, lon) if even else (lats, lat)
        middle = (span[0] + span[1]) / 2
        bits = bits << 1 | (value >= middle)
        span[0 if value >= middle else 1] = middle
        even = not even
        if number % 5 == 4:
            found, bits = found + _DIGITS[bits], 0
    return found
