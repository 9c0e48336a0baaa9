"""The words in which a graph is declared; they write down what was said and decide nothing.

`specifiers` has what stands at a field, `decorators` what stands at a class or a method, `declaration` what both write down.
The rooms above make record types of it; a model file gets the words from `keygraph` itself.
"""
