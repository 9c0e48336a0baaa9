"""The job that computes what transactions do not keep: counts, sums and other summaries of a whole table.

`work` is what the job does, as functions of the model: an item becomes contributions, which are combined by owner and
finished. `local` does it on this machine, `spark` on a cluster, `exports` reads what DynamoDB has exported, and `writing`
writes the results. The commands enter here; nothing else does.
"""
