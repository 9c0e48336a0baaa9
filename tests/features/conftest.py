"""Small models for what DESIGN.md 2 offers, each served and declared wrongly. Which module has which:

=====================================================  ===========================================================
mirrors and counterparts                               keygraph/test_counterparts, test_check_counterparts; documents/
                                                       test_social and test_billing, where they are served
unions as ends; ends that hold whole keys              keygraph/test_unions, test_check_unions; resolvers/
                                                       test_unions; features/test_whole_keys
declared formats, lossy ones, what rounds              keygraph/test_formats, test_check_options, test_key_text
times as numbers, reversed numbers, bases, ULIDs       features/test_number_formats
number and binary keys; no sort key                    keygraph/test_typed_keys
shards, of the table and of an index                   features/test_shards; resolvers/test_ranges, test_hard_paging,
                                                       test_separators; keygraph/test_check_keys
shared key attributes: inverted, a half, local, a      features/test_shared_keys; keygraph/test_index_paths
field's, an end's; sparse indexes; virtual nodes
ids of several fields; nested ends; several lists of   features/test_several; keygraph/test_paths, test_check,
one type; arguments of the partition                   test_check_keys, test_check_graph
types told apart by several attributes, by their        features/test_type_values, features/test_type_comparisons
beginning or presence
methods in the table's key                             features/test_methods_in_table_keys
compound arguments of the sort key                     resolvers/test_ranges, keygraph/test_check_names
open ranges with siblings                              keygraph/test_siblings, test_sibling_requests,
                                                       test_check_graph
projections                                            resolvers/test_projections, keygraph/test_check_table,
                                                       test_check_graph
=====================================================  ===========================================================
"""
