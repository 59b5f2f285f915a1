"""The objects of one cluster: types, defaults, ownership of fields, selectors."""
