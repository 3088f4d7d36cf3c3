"""Objects that live in the driver, called from its workers over authenticated connections."""
