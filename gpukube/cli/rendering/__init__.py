"""Documents -> lines for people, one module per kind of document. Pure: no stream; the width is an argument."""
