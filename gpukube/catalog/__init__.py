"""The catalog: embedded data, the results of refreshes on this machine, and what the clouds' packages contribute.

In scope: the interface to the providers, the file of refreshed data, refreshing, filters, and the documents of `gpukube
catalog`. Out of scope: the table and the choice of a machine (gpukube.gpu), calls (the providers), screens (cli).

Only `gpukube catalog` shows refreshed data. The meaning of a spec depends on the embedded table alone: otherwise a
price that changed overnight could plan the replacement of a pool on one machine but not on another. A refresh adds
only one thing to specs: names of new instance types (`learning`).
"""
