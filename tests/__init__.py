"""The tests; a package, so that `tests.clouds` is this one and not some distribution's stray folder."""
