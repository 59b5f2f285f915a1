"""The catalog as it is used: embedded data, what refreshes have left on this machine, and the clouds' part in both.

In scope: the seam to the providers, the file of refreshed data, refreshing, filters, and the documents of `gpukube
catalog`. Out of scope: the table and the choice of a machine (gpukube.gpu), calls (the providers), screens (cli).

Only `gpukube catalog` shows refreshed data. What a spec means rests on the embedded table alone: otherwise a price that
changed overnight would plan the replacement of a pool on one machine and not on the next. The one thing that specs gain
by a refresh is new names of instance types (`learning`).
"""
