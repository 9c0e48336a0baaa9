"""The second judge of the differential test: it says what an answer must be, and shares nothing with the product's reading.

A model is made at random as plain Python (`plain`), and told to the product as the source of a model file (`source`).
Its items are made from values (`items`), so that the judge knows what each one says without parsing a key. What an
operation must answer follows from these values alone (`ruling`). No module here imports `keygraph` but `asking`, which
asks the product.
"""
