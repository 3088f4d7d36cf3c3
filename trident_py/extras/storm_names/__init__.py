"""The extra ``storm_names``: what takes the place of names of Storm that are not here."""
