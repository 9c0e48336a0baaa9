"""Removes each defence of SECURITY.md, and shows that the test of its row then fails: `python -m tests.removed_defences [WORD]`.

Each runs in a copy of the packages and the tests, in some minutes altogether. With a word, only the tests that have it in
their names. `tests/test_security_page.py` holds that every row has a removal.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
_COPIED = ("keygraph", "resolvers", "server", "examples", "tests", "bench", "docs", "docker")
_SECONDS = 240

_HTTP = "server/keygraph_server/http"
_CONNECTIONS = "server/keygraph_server/connections"
_EXPOSITION = "server/keygraph_server/telemetry/exposition.py"
_LOGS = "server/keygraph_server/logs.py"
_STREAMS = "server/keygraph_server/processes/streams.py"
_RESOLVERS = "resolvers/keygraph_resolvers"
_COMMANDS = "server/keygraph_server/commands"
_JOBS = "server/keygraph_server/jobs"
_WRITING = "keygraph/writing"
_FAN_OUT = "keygraph/changes/fan_out.py"


class Removal(NamedTuple):
    """A text of a file, and what stands in its place without the defence."""

    file: str
    text: str
    instead: str
    other: Removal | None = None
    """A second line of the same defence."""


REMOVALS: dict[str, Removal] = {
    # --- Documents
    "test_it_is_refused_at_once": Removal(
        f"{_RESOLVERS}/plan/document_limits.py", "if found > most:", "if found > 100 * most:"
    ),
    "test_a_limit_is_held_at_its_edge": Removal(
        f"{_RESOLVERS}/plan/document_limits.py", "if found > most:", "if found > most + 1:"
    ),
    "test_introspection_is_limited_as_anything_else": Removal(
        f"{_RESOLVERS}/plan/document_limits.py", "if size.introspected and size.introspected > self._most_introspected:", "if False:"
    ),
    "test_a_hostile_document_keeps_nobody_waiting": Removal(
        f"{_RESOLVERS}/plan/documents.py", "len(self.request.document) <= SHORT_TEXT and not is_long", "not is_long"
    ),
    "test_a_new_document_is_planned_beside_others": Removal(
        f"{_RESOLVERS}/plan/documents.py", "len(self.request.document) <= SHORT_TEXT and not is_long", "not is_long"
    ),
    "test_introspection_keeps_nobody_waiting_and_is_kept": Removal(
        f"{_RESOLVERS}/worker_thread.py",
        "return await asyncio.get_running_loop().run_in_executor(self._thread, context.run, work, *arguments)",
        "return context.run(work, *arguments)",
    ),
    "test_no_name_is_suggested_while_a_value_is_read": Removal(
        f"{_RESOLVERS}/schema/strawberry_internals.py", "__defaults__ = (True,)", "__defaults__ = (False,)"
    ),
    "test_a_large_body_is_read_at_once": Removal(
        f"{_HTTP}/requests.py",
        "_LONG_NUMBER in alike",
        '__import__("re").search(rb"[0-9]{19}", text)',
    ),
    "test_a_body_of_many_small_values_is_not_parsed": Removal(
        f"{_HTTP}/requests.py", "if len(text) > _SMALL_TEXT and", "if False and"
    ),
    "test_what_is_no_graphql_request_is_400": Removal(f"{_HTTP}/requests.py", "            orjson.dumps(content)", "            pass"),
    "test_no_request_leaves_garbage": Removal(
        "keygraph/errors.py", "    left: list[BaseException | None] = [error]\n", "    left: list[BaseException | None] = []\n"
    ),
    "test_no_client_that_leaves_in_some_round_leaves_garbage": Removal(
        f"{_RESOLVERS}/engine/engine.py", "        if not self._ended.done():\n            self.due", "        if True:\n            self.due"
    ),
    "test_a_request_whose_client_leaves_does_not_wait_to_begin": Removal(
        f"{_HTTP}/middleware.py", "if not await begins:", "if await begins is None:"
    ),
    "test_bounds_of_new_page_sizes_are_computed_one_at_a_time": Removal(
        f"{_RESOLVERS}/service.py", "if bound.known is None and plan.roots:", "if False:"
    ),
    "test_an_operation_that_is_refused_again_is_not_computed_again": Removal(
        f"{_RESOLVERS}/plan/bound.py", "if known.most_expensive is not None:", "if False:"
    ),
    "test_a_connection_that_has_ended_leaves_no_garbage": Removal(
        f"{_CONNECTIONS}/guarded.py", "        self.flow.connection = None\n", ""
    ),
    "test_an_idle_connection_keeps_no_long_head": Removal(
        f"{_CONNECTIONS}/guarded.py", "                self.forget_request()\n", "                pass\n"
    ),
    "test_no_code_keeps_an_error_with_its_frames": Removal(
        f"{_RESOLVERS}/answer/completion.py", "None if error is None else as_value(error)", "error"
    ),
    "test_garbage_is_collected_by_the_bytes_of_bodies": Removal(
        f"{_CONNECTIONS}/gate.py", "if self._taken > _COLLECTED_BYTES:", "if False:"
    ),
    "test_chunks_of_a_few_bytes_have_an_end": Removal(
        "keygraph/chunks.py", "chunks > _CHUNKS + body // _CHUNK", "False"
    ),
    "test_a_stop_waits_for_no_hangup": Removal(
        "server/keygraph_server/processes/workers.py",
        "            if self.is_set():\n                return\n            new",
        "            new",
    ),
    "test_a_browser_says_where_a_post_comes_from": Removal(
        f"{_HTTP}/graphql_http.py",
        "if is_of_page and is_foreign(scope, options.origins):",
        "if False:",
    ),
    "test_a_small_rsa_key_verifies_nothing": Removal(
        "server/keygraph_server/auth/keys.py",
        "_RSA_BITS = 2_048",
        "_RSA_BITS = 1_024",
    ),
    "test_a_setting_is_refused_before_the_greeting": Removal(
        "server/keygraph_server/auth/viewers.py",
        "if is_set and settings.auth != needs:",
        "if False:",
    ),
    "test_variables_of_many_values_are_read_beside_others": Removal(
        f"{_RESOLVERS}/plan/documents.py", "if count > _FEW_VALUES:", "if False:"
    ),
    "test_a_page_keeps_nobody_waiting": Removal(
        "keygraph/turns.py",
        "if elapsed > most and (worked := min(elapsed, thread_time() - thread_began)) > most:",
        "if False:",
    ),
    "test_new_connections_of_a_proxy_do_not_come_before_one_that_comes_again": Removal(
        f"{_RESOLVERS}/engine/engine.py", 'return client.partition("\\n")[0]', "return client"
    ),
    "test_who_sends_little_passes_those_who_send_much": Removal(
        f"{_CONNECTIONS}/guarded.py", "count_bytes(self._reads_for, len(data))", "count_bytes('', 0)"
    ),
    "test_who_works_little_passes_those_who_work_much": Removal(
        f"{_RESOLVERS}/engine/engine.py", "before, self._budget.client)", "before)"
    ),
    "test_what_others_or_earlier_turns_have_worked_is_not_counted": Removal(
        f"{_RESOLVERS}/engine/engine.py", "of_all.thread_clock() - before, True", "0.0, True"
    ),
    "test_a_page_of_many_items_is_measured_in_turns": Removal(
        "resolvers/keygraph_resolvers/read/meter.py",
        "measured = await in_turns(_sizes, items)",
        "measured = _sizes(items)",
    ),
    "test_a_walk_over_many_lists_keeps_nobody_waiting": Removal(
        f"{_RESOLVERS}/engine/engine.py",
        "ends = perf_counter() + self._engine.rounds.turn\n        for number",
        "ends = float(\"inf\")\n        for number",
    ),
    "test_lists_of_one_node_again_and_again_keep_nobody_waiting": Removal(
        f"{_RESOLVERS}/engine/engine.py", "if self._worked > most:", "if False:"
    ),
    "test_many_walks_at_once_keep_nobody_waiting": Removal(
        f"{_RESOLVERS}/read/meter.py",
        "return 0.0 < rounds.ends < now",
        "return False",
        Removal(
            "keygraph/turns.py",
            "return self.rounds is not None and 0.0 <",
            "return False and 0.0 <",
        ),
    ),
    "test_a_round_that_is_over_lets_nothing_begin_and_the_next_one_those_who_have_waited_least": Removal(
        f"{_RESOLVERS}/engine/engine.py", "heappush(self.waiting, (place, ", "heappush(self.waiting, (0, "
    ),
    "test_requests_of_one_client_begin_behind_each_other": Removal(
        f"{_HTTP}/middleware.py", "if self._begun % _UNCLOCKED == 0:", "if False:"
    ),
    "test_operations_that_work_for_long_do_so_one_after_the_other": Removal(
        f"{_RESOLVERS}/engine/engine.py",
        "of_all.turn - (of_all.worked - before)",
        "of_all.turn",
    ),
    "test_values_in_items_of_a_few_kb_are_counted": Removal(
        f"{_RESOLVERS}/read/meter.py", "size += _NESTED_BYTES * nested", "pass"
    ),
    "test_a_large_operation_is_not_passed_by_all_that_another_client_sends": Removal(
        f"{_RESOLVERS}/engine/engine.py", "+ _PLACE * waited", "+ 100 * _PLACE * waited"
    ),
    "test_an_operation_that_was_let_through_waits_once_for_its_request_and_its_answer": Removal(
        "keygraph/turns.py", "self.rounds is not None and self.rounds.number <= let_through", "False and 0 <= let_through"
    ),
    "test_clients_that_ask_again_and_again_do_not_pass_one_that_waits": Removal(
        f"{_RESOLVERS}/engine/engine.py", "self.waiting[0][0] <= max(self._first, own) or ", ""
    ),
    "test_one_that_comes_seldom_passes_hundreds_that_come_all_the_time": Removal(
        f"{_RESOLVERS}/engine/engine.py", "self._is_seldom_next and", "False and"
    ),
    "test_what_is_made_of_one_item_again_and_again_is_held": Removal(
        f"{_RESOLVERS}/read/meter.py", "self.hold(_PAGE_BYTES + _EDGE_BYTES * edges)", "pass"
    ),
    "test_large_operations_read_on_one_at_a_time": Removal(
        f"{_RESOLVERS}/read/run.py", "await self.meter.holding.wait_to_answer()", "pass"
    ),
    "test_work_on_many_items_has_a_budget": Removal(
        "keygraph/turns.py", "self.spent > self.seconds", "False"
    ),
    "test_any_operation": Removal(
        f"{_RESOLVERS}/naming/global_ids.py",
        "    if found is None:\n        wanted",
        "    if False:\n        wanted",
    ),
    "test_what_may_cost_more_than_the_limit_is_refused": Removal(
        f"{_RESOLVERS}/service.py", "units > self._cost_limit", "False"
    ),
    "test_an_operation_whose_items_are_larger_than_declared_is_stopped": Removal(
        f"{_RESOLVERS}/read/meter.py",
        "self.is_exceeded = limit is not None and self.read_units > limit",
        "pass",
    ),
    "test_aliases_of_one_text": Removal(
        f"{_RESOLVERS}/answer/completion.py", "raise AnswerTooLarge", "pass"
    ),
    "test_a_text_is_counted_as_it_is_sent": Removal(
        f"{_RESOLVERS}/answer/completion.py", "return len(orjson.dumps(values)) - len(values) - 1", "return sum(map(len, values))"
    ),
    "test_a_large_answer_is_decoded_beside_others": Removal(
        "keygraph/engines/dynamodb/sending.py", "if received.size:", "if False:"
    ),
    "test_large_answers_wait_until_earlier_ones_are_used": Removal(
        "keygraph/engines/dynamodb/http1.py", "elif before <= LARGE_ANSWER < self._received:", "elif False:"
    ),
    "test_one_thread_parses_a_large_item_at_a_time": Removal(
        "keygraph/engines/sqlite/reads.py", "elif len(content) >= _LARGE_ROW:", "elif False:"
    ),
    "test_writes_of_one_client_keep_no_other_waiting": Removal(
        "keygraph/engines/sqlite/engine.py", "_writes.add(operation_client(),", '_writes.add("",'
    ),
    "test_who_has_had_little_goes_before_a_hundred_and_these_before_ever_new_ones": Removal(
        "keygraph/turns.py", "queues if self._is_oldest_next", "queues if True"
    ),
    "test_a_large_item_is_planned_once_however_often_others_write_what_is_written_with_it": Removal(
        "keygraph/engines/sqlite/writes.py", "if key in plan.same:", "if False:"
    ),
    "test_clients_get_a_place_in_turn": Removal(
        "keygraph/engines/dynamodb/gate.py", "_waiting.add(operation_client(),", '_waiting.add("",'
    ),
    "test_long_reads_of_one_client_leave_threads_to_others": Removal(
        "keygraph/admission.py", "filter(None, [operation_client()])", "()"
    ),
    "test_others_run_while_a_large_answer_is_read": Removal(
        "keygraph/engines/dynamodb/transport.py", "parsed_in_turns(text) if is_large(text) else", ""
    ),
    "test_whoever_needs_little_is_not_behind_those_who_need_much": Removal(
        "keygraph/engines/dynamodb/transport.py", "(begins + size, next", "(0, next"
    ),
    "test_clients_take_turns_with_large_answers_and_too_many_are_refused": Removal(
        "keygraph/engines/dynamodb/http1.py", "if client and any(", "if False and any("
    ),
    "test_integers_of_more_than_64_bits_are_written_beside_others": Removal(
        f"{_HTTP}/graphql_http.py", "return await _LONG_TEXTS.run(as_long_json, response)", "return as_long_json(response)"
    ),
    "test_only_what_a_long_integer_is_in_is_copied": Removal(
        f"{_RESOLVERS}/schema/json_numbers.py", "case int() if value.bit_length() > 63:", "case int() if not isinstance(value, bool):"
    ),
    "test_the_schema_is_printed_once_and_beside_others": Removal(
        f"{_RESOLVERS}/schema/federation.py", "if not kept.cache_info().currsize:", "if False:"
    ),
    "test_others_are_refused_before_they_are_read": Removal(
        "server/keygraph_server/documents/known.py",
        "if self.is_open or text in self._trusted_texts or may_send_it:",
        "if True:",
    ),
    "test_they_take_no_more_bytes_than_the_setting_says": Removal(
        "keygraph/kept.py", "if self.bytes > self._most:", "if False:"
    ),
    "test_ever_new_values_push_out_none_that_is_used": Removal(
        "keygraph/kept.py", "lasting.add(key)", "pass"
    ),
    "test_what_takes_the_place_of_others_is_collected": Removal("keygraph/kept.py", "gc.collect(1)", "pass"),
    "test_there_are_no_others": Removal(
        "keygraph/keys/types.py", '@kept("numbers", 4096, 700)', "@__import__('functools').lru_cache"
    ),
    # --- Connections
    "test_a_head_without_an_end": Removal(
        f"{_CONNECTIONS}/guarded.py",
        "if self.reading is HEAD and self.received > limit:",
        "if False:",
    ),
    "test_fields_beyond_the_limit_are_not_parsed": Removal(
        f"{_CONNECTIONS}/httptools_protocol.py", "if len(self.headers) == most:", "if False:",
        Removal(f"{_CONNECTIONS}/h11_protocol.py", "if self._fields_ahead(before) > most:", "if False:"),
    ),
    "test_a_long_path_is_not_decoded": Removal(
        f"{_CONNECTIONS}/heads.py", "if len(target) > _LONGEST_PATH and", "if False and"
    ),
    "test_a_request_says_its_host_once": Removal(
        f"{_CONNECTIONS}/heads.py",
        "or hosts > 1 or (hosts == 0 and",
        "or (False and",
    ),
    "test_what_others_read_differently_is_refused": Removal(
        f"{_CONNECTIONS}/heads.py", "return refusals.NO_SUCH_", "return None and refusals.NO_SUCH_"
    ),
    "test_requests_that_wait_are_limited_together": Removal(
        f"{_CONNECTIONS}/gate.py", "return self.held > self.settings.connection_memory", "return False"
    ),
    "test_reading_takes_turns": Removal(
        f"{_CONNECTIONS}/guarded.py", "shared.may_be_over() and", "False and"
    ),
    "test_connections_of_a_trusted_proxy_are_not_read_behind_each_other": Removal(
        f"{_CONNECTIONS}/guarded.py", "if self.client[0] in", "if False and self.client[0] in"
    ),
    "test_what_came_with_requests_that_wait_is_read_later": Removal(
        f"{_CONNECTIONS}/guarded.py", "if start and not is_last and", "if False and"
    ),
    "test_who_sends_and_never_reads": Removal(
        f"{_CONNECTIONS}/guarded.py",
        "return self._turn is None and not self.flow.write_paused and not self.has_requests_waiting()",
        "return True",
        Removal(
            f"{_CONNECTIONS}/guarded.py",
            "waiting > settings.max_pipelined or",
            "False or",
            Removal(f"{_CONNECTIONS}/guarded.py", "shared.may_be_over() and", "False and"),
        ),
    ),
    "test_many_who_ask_for_much_and_never_read": Removal(
        f"{_RESOLVERS}/read/meter.py", "_LARGE_AT_ONCE = 1\n", "_LARGE_AT_ONCE = 1_000\n"
    ),
    "test_half_bodies": Removal(
        f"{_CONNECTIONS}/gate.py", "if self.is_full:", "if False:"
    ),
    "test_half_heads_lock_nobody_out": Removal(
        f"{_CONNECTIONS}/gate.py", "if address is None or connection.address == address:", "if False:"
    ),
    "test_who_is_gone_takes_no_time_of_a_busy_server": Removal(
        f"{_CONNECTIONS}/guarded.py", "or bool(self._rounds.waiting)", ""
    ),
    "test_the_time_of_an_operation_begins_with_its_first_byte": Removal(
        f"{_HTTP}/graphql_http.py", "began=began,", "began=None,"
    ),
    "test_a_body_has_its_time_and_may_be_slow": Removal(
        f"{_CONNECTIONS}/guarded.py", "elif seconds > settings.body_timeout:", "elif False:"
    ),
    "test_an_answer_must_be_taken": Removal(
        f"{_CONNECTIONS}/system.py", "elif now - self._taken_at > seconds:", "elif False:"
    ),
    "test_an_answer_that_is_not_taken_is_counted_whole": Removal(
        "server/keygraph_server/listening.py", 'if hasattr(socket, "TCP_NOTSENT_LOWAT"):', "if False:"
    ),
    "test_an_address_takes_places_from_itself_alone": Removal(
        f"{_CONNECTIONS}/gate.py", "if most and 4", "if False and 4"
    ),
    "test_who_has_connected_and_is_still_there_is_accepted": Removal(
        f"{_CONNECTIONS}/factory.py", "accepted.getpeername()", "0,"
    ),
    "test_if_all_are_busy_the_new_one_is_told": Removal(
        f"{_CONNECTIONS}/factory.py", "if self._gate is None or", "if True or"
    ),
    "test_a_busy_loop_takes_many_connections_in_a_turn": Removal(
        "server/keygraph_server/processes/server.py", "_AT_ONCE = 16", "_AT_ONCE = 0"
    ),
    "test_an_offer_to_change_the_protocol_is_ignored": Removal(
        f"{_CONNECTIONS}/httptools_protocol.py", "if parser.should_upgrade():", "if False:"
    ),
    "test_a_short_value_is_read_once_and_a_long_one_is_not_kept": Removal(
        f"{_HTTP}/requests.py", "if len(value) <= _LONGEST_KEPT", "if True"
    ),
    "test_a_value_of_many_parts_takes_no_time": Removal(
        f"{_HTTP}/requests.py", 'else known(b"")', "else read(value)"
    ),
    "test_long_offers_of_a_handshake_are_not_read": Removal(
        f"{_CONNECTIONS}/guarded.py", "len(each[1]) <= _LONGEST_OFFER", "True"
    ),
    "test_long_fields_of_a_client_are_not_read": Removal(
        "server/keygraph_server/telemetry/tracing.py", " and len(headers[name]) <= LONGEST_READ", ""
    ),
    "test_a_larger_one_in_chunks_is_not_read_to_its_end": Removal(
        f"{_HTTP}/middleware.py", 'count += len(message.get("body", b""))', "count += 0"
    ),
    "test_the_turns_of_large_answers_go_from_client_to_client": Removal(
        f"{_RESOLVERS}/read/meter.py", "large_answers.enter(clients=self.clients)", "large_answers.enter()"
    ),
    "test_one_client_never_has_all_places": Removal(
        "keygraph/admission.py", "dict.fromkeys(names, self._half)", "{}"
    ),
    "test_what_others_have_sent_meanwhile_keeps_no_new_document_waiting": Removal(
        f"{_RESOLVERS}/plan/documents.py", "if self.place is None and len(self.request.document) <= SHORT_TEXT and", "if False and"
    ),
    "test_one_that_comes_seldom_goes_before_those_that_come_again_and_again": Removal(
        "keygraph/turns.py", "sorted(queues, key=self._had.__getitem__)", "queues"
    ),
    "test_large_operations_leave_places_to_small_ones": Removal(
        "keygraph/admission.py", "{LARGE: self._half}", "{}"
    ),
    "test_slow_reads_of_many_addresses_leave_places_to_small_operations": Removal(
        "keygraph/admission.py", "            leave_place()\n", ""
    ),
    "test_a_client_that_leaves_before_its_turn_takes_no_connection": Removal(
        f"{_CONNECTIONS}/guarded.py", "if is_gone(self.transport):  # which", "if False:  # which"
    ),
    "test_operations_of_many_requests_that_wait_leave_places_to_small_ones": Removal(
        "keygraph/turns.py", "if waited > _WAITS_OF_A_SMALL_OPERATION and", "if False and"
    ),
    "test_large_mutations_leave_places_to_small_operations": Removal(
        "resolvers/keygraph_resolvers/service.py", "bool(plan.writes) and size >= ITEMS_OF_A_PLACE", "True"
    ),
    "test_one_client_does_not_fill_the_queue_and_leaves_nothing_in_it": Removal(
        "keygraph/admission.py", "if not counted[name]:", "if False:"
    ),
    "test_what_neither_runs_nor_waits_is_refused_at_once": Removal(
        "keygraph/admission.py", "if self._waiting_of[\"\"] >= self._most_waiting or any(", "if any("
    ),
    "test_thousands_on_a_dynamodb_that_hangs": Removal(
        "keygraph/admission.py",
        'if self._waiting_of[""] >= self._most_waiting or any(',
        "if any(",
        Removal("keygraph/admission.py", "self._waiting_of[each] >= share", "False"),
    ),
    "test_the_memory_of_a_walk_grows_with_its_frontier": Removal(
        f"{_RESOLVERS}/steps/walks/walk.py", "holding.take_walked(0, new)", "pass"
    ),
    "test_large_bodies_of_one_client_wait_unread": Removal(
        f"{_RESOLVERS}/read/meter.py", "Admission(_BODIES, _WAITING_BODIES, waits_by_size=True)", "Admission(10**6, 10**6)"
    ),
    "test_a_collection_looks_at_few_objects_however_many_an_operation_keeps": Removal(
        "server/keygraph_server/processes/collection.py",
        "if makes_much()",
        "if False",
    ),
    "test_in_an_outage_a_trickle_is_sent": Removal(
        "keygraph/engines/dynamodb/gate.py",
        "if self.is_probing or self.clock.time() < self._probed_at:",
        "if False:",
    ),
    "test_large_answers_wait_for_others_whatever_reads_them_and_that_is_no_outage": Removal(
        "keygraph/engines/dynamodb/http1.py", "ANSWERED.get()()", "pass"
    ),
    "test_answers_that_wait_for_a_busy_server_are_no_outage": Removal(
        "keygraph/engines/dynamodb/gate.py", "if not self.is_answered and", "if"
    ),
    "test_a_full_pipe_stops_neither_requests_nor_signals": Removal(
        _STREAMS, 'elif stream is getattr(sys, f"__{name}__"):', "elif False:"
    ),
    "test_what_nobody_reads_is_dropped_and_counted": Removal(
        _STREAMS, "if self._is_full or self._queued - self._written + size > self._most:", "if False:"
    ),
    "test_a_process_ends_though_nobody_reads": Removal(
        _STREAMS, "event.wait(max(0.0, end - time.monotonic()))", "event.wait()"
    ),
    "test_half_requests_and_clients_that_leave_keep_no_scrape_waiting": Removal(
        _EXPOSITION, "max_connections=32", "max_connections=1_000"
    ),
    "test_requests_in_a_row_take_the_time_of_one": Removal(
        _EXPOSITION, "if time.monotonic() - made_at >= _RECENT_SECONDS:", "if True:"
    ),
    "test_any_accept_header_is_answered": Removal(
        _EXPOSITION, '_OPEN_METRICS if is_open else ""', 'request.headers.get("accept", "")'
    ),
    "test_no_text_ends_a_line_or_makes_it_long": Removal(
        "server/keygraph_server/errors.py",
        "if text.isprintable() and not _UNSEEN.search(text):",
        "if True:",
    ),
    "test_of_many_lines_alike_some_are_logged_and_all_are_counted": Removal(
        _LOGS, "passes = allowed >= 1", "passes = True"
    ),
    "test_many_who_ask_are_one_look": Removal(
        f"{_HTTP}/readiness.py", "if self._looking is None and (", "if True or ("
    ),
    "test_operations_are_given_up_where_all_hold_too_much": Removal(
        f"{_RESOLVERS}/read/meter.py", "if memory.held > memory.limit and self.held > min(memory.limit, _ALWAYS_HELD):", "if False:"
    ),
    # --- Browsers
    "test_what_a_foreign_page_can_send_is_refused": Removal(
        f"{_HTTP}/graphql_http.py", "if is_forgeable(scope, options.origins):", "if False:"
    ),
    "test_no_other_may": Removal(
        f"{_HTTP}/origins.py",
        "return self.pattern is None or self.pattern.fullmatch(origin) is not None",
        "return True",
    ),
    "test_it_may_only_be_a_query": Removal(
        f"{_HTTP}/graphql_http.py", "only_queries=observation.is_get", "only_queries=False"
    ),
    "test_a_foreign_host_is_refused_on_every_path": Removal(
        "server/keygraph_server/listening.py", "if allowed is None and not (getattr", "if True or not (getattr"
    ),
    "test_every_answer_has_them": Removal(
        f"{_HTTP}/middleware.py", "[*headers, *added, *of_request]", "[*headers, *of_request]"
    ),
    "test_in_production_browsers_stay_with_https": Removal(
        "server/keygraph_server/connections/refusals.py", "if https_only else _SECURE", "if False else _SECURE"
    ),
    "test_titles_and_queries_are_text": Removal(
        "server/keygraph_server/playground/page.py", "title=escape(settings.title)", "title=settings.title"
    ),
    "test_a_spreadsheet_computes_nothing_of_a_file": Removal(
        "server/keygraph_server/playground/static/export.js", "line.map(inert)", "line"
    ),
    "test_no_script_stands_in_the_page_and_none_is_from_elsewhere": Removal(
        "server/keygraph_server/playground/page.py", "script-src 'self'", "script-src 'self' 'unsafe-inline'"
    ),
    "test_the_lock_file_pins_hashes_and_no_addresses": Removal(
        "server/playground/package-lock.json", '"integrity": "sha512', '"hash": "sha512'
    ),
    # --- What may be seen
    "test_a_hidden_node_is_as_if_it_did_not_exist": Removal(
        f"{_RESOLVERS}/steps/get.py",
        "if not names and decisions.count(True) == len(decisions):",
        "if True:",
        Removal(f"{_RESOLVERS}/steps/partial_page.py", "or access.allows(edge)]", "or True]"),
    ),
    "test_without_items_the_values_are_variables": Removal(
        "server/keygraph_server/app.py", "settings.playground_items and viewer is None", "settings.playground_items"
    ),
    "test_a_hidden_field_cannot_be_filtered_by": Removal(
        f"{_RESOLVERS}/read/connection.py", "raise forbidden(record, name)", "pass"
    ),
    "test_the_cost_does_not_tell_what_is_there": Removal(
        f"{_RESOLVERS}/plan/documents.py", "sent = None if is_secretive else self.meter.sent", "sent = self.meter.sent"
    ),
    "test_the_cost_does_not_tell_of_another_type_with_that_key": Removal(
        f"{_RESOLVERS}/plan/plan.py", "for other in self.graph.with_same_key(record)}", "for other in ()}"
    ),
    "test_hidden_items_of_one_node_in_two_shards": Removal(
        f"{_RESOLVERS}/steps/get.py", "if len(there) > 1 and access is not None:", "if False:"
    ),
    "test_to_reads_no_index_with_a_part_that_an_edge_lacks_or_that_is_hidden": Removal(
        "keygraph/model/paths.py", "or hold_all(self.record, keys, known):", "or True:"
    ),
    "test_a_plan_is_nobodys": Removal(
        f"{_RESOLVERS}/read/run.py",
        "self.access = Permissions(self.viewer, self.time.is_there) if",
        "self.access = self.graph.__dict__.setdefault('one', Permissions(self.viewer, self.time.is_there)) if",
    ),
    "test_no_race_gets_past_a_rule": Removal(
        f"{_WRITING}/rules.py", "conditions = [each.condition for each in found]", "conditions = []"
    ),
    "test_a_hidden_end_is_as_good_as_absent": Removal(
        f"{_WRITING}/context.py", "return item if record is not None and self.is_visible(record, item) else None", "return item"
    ),
    "test_the_version_of_a_hidden_record_is_not_told": Removal(
        f"{_WRITING}/rules.py",
        "hidden = missing(request) if identity is None else",
        "hidden = _forbidden(record, 'update', request.where) if identity is None else",
    ),
    "test_an_idempotency_key_is_its_viewers": Removal(
        f"{_RESOLVERS}/steps/write.py", "(*given, run.viewer.identity)", "given"
    ),
    "test_a_method_is_read_by_its_needs_or_by_a_read_rule_that_names_it": Removal(
        "keygraph/access/grants.py", "*([*naming, *each] for each in needed)]", "]"
    ),
    "test_what_a_list_looks_up_for_claims_is_limited_while_it_runs": Removal(
        f"{_RESOLVERS}/read/meter.py", "self.holding.hold(_LOOKUP_BYTES * keys)", "pass"
    ),
    "test_more_lookups_than_a_rule_makes_allow_nothing": Removal(
        "keygraph/resolve/access.py", "<= MOST_LOOKUPS", "<= 1_000"
    ),
    "test_each_value_of_a_claim_is_a_lookup_of_the_bound": Removal(
        f"{_RESOLVERS}/read/access.py", "frozenset(used.items())", "frozenset(used)"
    ),
    "test_a_subscription_that_cannot_begin_names_nothing_of_the_store": Removal(
        f"{_HTTP}/graphql_http.py", "str(refused) if self.endpoint_names else", "str(refused) if True else"
    ),
    "test_an_empty_claim_is_a_missing_one": Removal(
        "keygraph/access/claims.py", 'each not in (None, "")', "each is not None"
    ),
    "test_a_deletion_that_is_refused_has_deleted_nothing": Removal(
        f"{_WRITING}/sending/removal.py", "                await self._look_ahead(rest)", "                pass"
    ),
    "test_a_public_key_is_no_shared_secret": Removal(
        "server/keygraph_server/auth/tokens.py",
        '{"require": ["exp"],',
        '{"require": ["exp"], "verify_signature": False,',
    ),
    "test_a_public_key_in_another_form_is_no_shared_secret": Removal(
        "server/keygraph_server/auth/keys.py", "elif _is_public_key(text.encode()):", "elif False:"
    ),
    "test_a_new_key_is_fetched_and_invented_ids_are_not": Removal(
        "server/keygraph_server/auth/keys.py", "now - self._tried > RETRY_SECONDS", "True"
    ),
    "test_odd_claims_are_nobodys": Removal(
        "server/keygraph_server/auth/tokens.py", "except Exception:", "except jwt.PyJWTError:"
    ),
    "test_an_odd_key_hides_no_other": Removal(
        "server/keygraph_server/auth/keys.py", "            continue\n", "            raise\n"
    ),
    "test_only_a_short_public_key_is_read": Removal(
        "server/keygraph_server/auth/keys.py", "PyJWK.from_dict(public)", "PyJWK.from_dict(each)"
    ),
    "test_what_is_no_set_of_keys_is_an_outage": Removal(
        "server/keygraph_server/auth/keys.py", "if len(document) > MOST_BYTES:", "if False:"
    ),
    "test_an_answer_that_trickles_has_one_deadline": Removal(
        "server/keygraph_server/auth/keys.py", "self._socket.shutdown(socket.SHUT_RDWR)", "pass"
    ),
    "test_no_cache_keeps_what_one_viewer_saw": Removal(
        f"{_HTTP}/graphql_http.py", "is_open = options.viewer_of is None and", "is_open ="
    ),
    "test_a_cursor_of_another_list": Removal(
        f"{_RESOLVERS}/read/cursors.py", "self._about = [_dump(about)]", "self._about = []"
    ),
    "test_a_walk_does_not_continue_where_somebody_with_other_rights_was": Removal(
        "keygraph/access/claims.py", " or name in ruling", ""
    ),
    "test_an_odd_value_of_a_hidden_field_is_not_named": Removal(
        f"{_WRITING}/items.py", "if is_stored and restricted_name(self.record, name):", "if False:"
    ),
    "test_a_page_that_ends_early_does_not_tell_the_length_of_a_hidden_key": Removal(
        f"{_RESOLVERS}/read/cursors.py", "plain += _packed(hidden, block=_HIDDEN_BLOCK_BYTES)", "plain += _packed(hidden)"
    ),
    "test_a_cursor_tells_no_key": Removal(
        f"{_RESOLVERS}/read/cursors.py",
        "return _text(self._cipher.encrypt(plain, self._about))",
        "return _text(plain)",
    ),
    "test_what_cannot_be_used_is_named": Removal(
        "server/keygraph_server/settings.py", "min_length=SECRET_CHARACTERS", "min_length=1"
    ),
    "test_an_unexpected_error_shows_nothing_but_its_id": Removal(
        f"{_HTTP}/middleware.py", "_answer([internal_error(error)], 500)", "_answer([{'message': str(error)}], 500)"
    ),
    "test_no_record_has_the_key_of_a_note": Removal(
        "keygraph/resolve/collisions.py", "if is_text and not are", "if False and not are"
    ),
    "test_required_names_are_not_told": Removal(
        f"{_RESOLVERS}/plan/validation.py", "if text in sent or text in _ALWAYS_NAMED", "if True"
    ),
    "test_names_are_not_suggested": Removal(
        "server/keygraph_server/services.py", "suggestions=settings.suggestions", "suggestions=True"
    ),
    # --- The SQLite file
    "test_a_conflict_names_the_version_to_who_may_read_it": Removal(
        f"{_WRITING}/rules.py", "if not write.is_visible(record, item, version.name):", "if False:"
    ),
    "test_only_who_may_read_a_field_may_add_to_it": Removal(
        f"{_WRITING}/rules.py", "    yield from unread\n", ""
    ),
    "test_a_copy_of_what_some_may_not_read": Removal(
        "keygraph/check/access.py", "for check_all in (_values_in_keys, _open_tallies, _derived_in_use):", "for check_all in (_values_in_keys, _open_tallies):"
    ),
    "test_two_names_of_one_attribute": Removal(
        "keygraph/check/access.py", "        if differing:\n", "        if False:\n"
    ),
    "test_a_key_whose_length_tells_of_a_hidden_part": Removal(
        "keygraph/check/access.py", "return \"its length\" if is_one_key and (may_lack or not _has_one_length(hidden)) else \"\"", "return \"\""
    ),
    "test_a_key_that_is_there_only_with_a_hidden_field": Removal(
        "keygraph/check/access.py", "if may_lack and hidden.name not in keys.optional and", "if False and"
    ),
    "test_a_number_by_what_is_hidden": Removal(
        "keygraph/check/access.py", "and not (group is rules.walls.get(\"read\") and _is_same_wall(access, path))", "and group is not rules.walls.get(\"read\")"
    ),
    "test_a_list_of_several_types_that_only_their_keys_tell_apart": Removal(
        "keygraph/lists/query.py", "is_decided_here=not is_distinguished,", "is_decided_here=not self.has_types,"
    ),
    "test_aggregates_adds_and_rankings_by_what_no_rule_gives": Removal(
        f"{_RESOLVERS}/schema/visible.py", "            case kinds.Aggregate():\n", "            case None:\n"
    ),
    "test_lists_that_no_rule_gives_are_named_nowhere": Removal(
        f"{_RESOLVERS}/schema/visible.py", "yield \"ListName\", name", "pass"
    ),
    "test_a_key_with_a_part_of_a_field_does_not_open_the_whole_field": Removal(
        "keygraph/access/grants.py", " and not (action == \"read\" and name in self.parts)", ""
    ),
    "test_a_field_in_the_type_attribute": Removal(
        "keygraph/resolve/write_rules.py", " *_rules_of_type_values(record, values))", ")"
    ),
    "test_a_log_that_was_cut_takes_nothing_else_along": Removal(
        "keygraph/engines/sqlite/files.py", "os.ftruncate(self.log_file.fileno(), self._whole_end)", "pass"
    ),
    "test_both_names_are_read_and_compared": Removal(
        "keygraph/model/comparisons.py", "present = And(_present(attribute))", "present = Exists(attribute)"
    ),
    "test_a_key_with_a_copy_tells_no_length": Removal(
        "keygraph/check/access.py", "changed += [other for other in others if other not in changed]", ""
    ),
    "test_a_process_that_hangs_when_credentials_expire": Removal(
        "keygraph/engines/dynamodb/settings.py", "asyncio.wait([loading], timeout=self._seconds)", "asyncio.wait([loading])"
    ),
    # --- Commands
    "test_where_it_cannot_be_copied": Removal(
        "server/keygraph_server/stores.py", "return one.samefile(other)", "return one == other"
    ),
    "test_notes_that_are_copied_with_a_table_are_of_another_stream": Removal(
        "keygraph/engines/sqlite/catalogue.py", "_changes_{os.urandom(8).hex()}", "_changes"
    ),
    "test_a_table_of_a_server_is_not_copied_into_itself": Removal(
        f"{_COMMANDS}/whole_table/copy.py", "other.origin == found.origin", "False"
    ),
    "test_a_refused_load_leaves_what_others_have_written": Removal(
        f"{_COMMANDS}/load.py", "    finished(job.run(settings, resume=resume), lambda: job.so_far)", "    try:\n        finished(job.run(settings, resume=resume), lambda: job.so_far)\n    except BaseException:\n        settings.sqlite_file.unlink(missing_ok=True)\n        raise"
    ),
    "test_an_interrupted_copy_goes_on": Removal(
        f"{_COMMANDS}/whole_table/copy.py", "if not await copying.is_there():", "if False:"
    ),
    "test_a_terminal_obeys_no_text_of_an_export": Removal(
        f"{_COMMANDS}/export.py", "if target.isatty() else line", "if False else line"
    ),
    "test_no_text_of_an_item_is_obeyed_by_a_terminal": Removal(
        "server/keygraph_server/terminal/output.py", "map(printable, text.split(", "map(str, text.split("
    ),
    "test_a_number_that_none_can_hold_stays_missing": Removal(
        "keygraph/tables/repair.py", "    wrong = [each for each in wrong if is_storable(each.right)]\n", ""
    ),
    "test_a_value_to_which_nothing_can_be_added_stops_no_other_repair": Removal(
        "keygraph/tables/repair.py", "            return _why(error)\n\n    async def _send(", "            raise error\n\n    async def _send("
    ),
    "test_numbers_that_are_too_large_together_stop_no_verification": Removal(
        "keygraph/model/node_shards.py", "import SetTo, changed", "import AddNumber as SetTo, changed"
    ),
    "test_an_end_that_cannot_be_compared_blocks_no_write": Removal(
        f"{_WRITING}/tallies.py", " or type(known[derived.AT]) not in types | {type(None)}:", ":"
    ),
    "test_a_mark_that_cannot_be_read_is_one_that_was_left": Removal(
        f"{_WRITING}/marks.py", "return CopyingMark(new_token(), unreadable=", "raise KeyError("
    ),
    "test_a_mark_of_another_program_blocks_neither_writes_nor_deletes": Removal(
        f"{_WRITING}/marks.py", 'if isinstance(mark, str) and "#" in mark:', "if isinstance(mark, str):"
    ),
    "test_a_mark_of_what_no_copy_follows_is_removed": Removal(
        f"{_WRITING}/sending/edges.py", "        references = (\n", "        references = write.graph.references[request.record.name] and (\n"
    ),
    "test_a_note_that_cannot_be_read_is_a_conflict": Removal(
        f"{_WRITING}/sending/idempotency.py", "except (BadUserInput, LookupError, TypeError, ValueError):", "except ZeroDivisionError:"
    ),
    "test_a_page_that_comes_again_and_again_is_an_outage": Removal(
        "keygraph/engines/dynamodb/engine.py", "if last is not None and last == request.start:", "if False:"
    ),
    "test_an_item_that_an_answer_has_twice_is_an_outage": Removal(
        "keygraph/engines/dynamodb/answers.py", "if len(by_key) < len(items):", "if False:"
    ),
    "test_changes_and_shards_that_come_again_and_again_are_read_once": Removal(
        "keygraph/engines/dynamodb/engine.py", " if each.position > after}", "}"
    ),
    "test_a_shard_has_an_end_only_where_it_is_described_as_closed": Removal(
        "keygraph/engines/dynamodb/engine.py", "each.name == request.shard and not each.is_closed", "False"
    ),
    "test_a_worker_reads_what_it_has_taken_when_it_can_take_no_more": Removal(
        "keygraph/changes/following.py",
        "async for lease in self._leases.take(stream):",
        "for lease in [each async for each in self._leases.take(stream)]:",
    ),
    "test_nobody_takes_a_shard_whose_changes_take_longer_than_a_lease": Removal(
        "keygraph/changes/following.py",
        "await self._handled(stream, shard, records, position)",
        "await self._handle(shard, records)",
    ),
    "test_a_position_that_its_server_refuses_is_replaced": Removal(
        "keygraph/engines/dynamodb/errors.py", '"GetShardIterator" and kind in _OURS', '"" and kind in _OURS'
    ),
    "test_what_no_valkey_server_answers_is_an_outage": Removal(
        _FAN_OUT, "except Exception as error:\n        raise", "except OSError as error:\n        raise"
    ),
    "test_changes_that_the_stream_lost_end_the_subscription": Removal(
        f"{_RESOLVERS}/live/queries.py", "await self._changes.start_at_latest()\n                    self", "self"
    ),
    "test_shards_that_were_not_described_are_looked_for_again": Removal(
        "keygraph/changes/stream.py", "if not ready:", "if False:"
    ),
    "test_shards_that_come_before_themselves_are_refused": Removal(
        "keygraph/dynamo/streams.py", "if name in line:", "if False:"
    ),
    "test_exports_of_other_tables_in_the_same_folder_are_not_read": Removal(
        "keygraph/summaries/exports.py", "if each.table == table]", "]"
    ),
    "test_a_line_without_an_end_is_not_read": Removal(
        "keygraph/tables/interchange.py", "file.readline(most + 1)", "file.readline()"
    ),
    "test_a_list_of_files_that_cannot_be_used": Removal(
        "keygraph/summaries/exports.py", 'below.is_absolute() or ".." in below.parts or ', ""
    ),
    "test_a_sum_that_no_number_holds_is_left_and_stops_nothing_else": Removal(
        "keygraph/summaries/work.py", "        return items.to_typed(value)\n    except ValueError:", "        return items.to_typed(value)\n    except KeyError:"
    ),
    "test_verify_ends_though_there_are_always_changes": Removal(
        "keygraph/changes/totals.py", "if is_later and", "if not records and"
    ),
    "test_a_node_that_expires_before_it_is_written_stops_nothing": Removal(
        "keygraph/changes/counting.py",
        " and not graph.is_expired(each, now()))",
        ")",
        Removal("keygraph/summaries/writing.py", " or self._graph.is_expired(item, now())", ""),
    ),
    "test_an_age_that_cannot_be_read_is_overwritten": Removal(
        "keygraph/dynamo/conditions.py", "        except TypeError:\n            # A list", "        except KeyError:\n            # A list"
    ),
    "test_two_jobs_at_once_do_not_share_a_file": Removal(
        "keygraph/summaries/local.py", "    PRAGMA locking_mode = EXCLUSIVE;\n", ""
    ),
    "test_a_work_file_whose_log_is_copied_only_in_part_is_resumed": Removal(
        "keygraph/summaries/local.py", '                database.execute("PRAGMA writable_schema = ON")\n', ""
    ),
    "test_a_job_is_not_resumed_as_another_one": Removal(
        f"{_COMMANDS}/summarize.py", 'f"{self.options.is_dry_run} {self.options.only_changed}",', ""
    ),
    "test_a_file_that_is_no_work_file_is_neither_replaced_nor_deleted": Removal(
        "keygraph/summaries/local.py",
        "if application != _APPLICATION:",
        "if False:",
        Removal("keygraph/summaries/local.py", "            check_files(path)", "            pass"),
    ),
    "test_a_file_that_is_no_state_is_neither_replaced_nor_deleted": Removal(
        f"{_JOBS}/checkpoint.py", 'if beginning not in (b"", _MARK):', "if False:"
    ),
    "test_no_output_takes_the_place_of_a_file_of_the_table": Removal(
        "server/keygraph_server/stores.py", "if path is None or file is None:", "if True:"
    ),
    "test_a_state_is_readable_by_its_owner_and_leaves_nothing_beside_it": Removal(
        f"{_JOBS}/replacing.py", "        undone.callback(Path(part.name).unlink, missing_ok=True)\n", ""
    ),
    "test_a_full_disk_is_logged_once": Removal(
        "keygraph/engines/sqlite/engine.py", "            self._note(_reason(error))\n", ""
    ),
    "test_what_names_a_node_in_an_index_with_a_hidden_field": Removal(
        f"{_WRITING}/steps.py", "else {end, *names_by_order(path)}", "else {end}"
    ),
    "test_what_names_a_node_by_a_hidden_end": Removal(
        f"{_WRITING}/steps.py", " and all(write.is_visible(record, item, name) for name in names)", ""
    ),
    "test_how_many_name_a_node_is_counted_where_none_can_be_hidden": Removal(
        f"{_WRITING}/sending/removal.py", "may_hide = may_hide_reference(write, reference)", "may_hide = False"
    ),
    "test_the_counterpart_of_an_edge_is_held_too": Removal(
        f"{_WRITING}/rules.py", "_forbidden(request.record, action, request.where))", "_forbidden(record, action, request.where))"
    ),
    "test_a_hidden_counterpart_is_found_only_where_nothing_else_is_wrong": Removal(
        f"{_WRITING}/records.py", "if there is None and rules.is_other_guarded(write, record):", "if False:"
    ),
    "test_an_end_is_changed_by_another_name_by_who_may_read_and_write_it": Removal(
        f"{_WRITING}/rules.py", "for name, given in _changed_with_others(write, request):", "for name, given in ():"
    ),
    "test_nothing_is_computed_from_a_record_that_may_not_be_changed": Removal(
        f"{_WRITING}/rules.py", "return bool(own.refusals.found)", "return False"
    ),
    "test_nothing_is_computed_from_a_counterpart_that_may_not_be_changed": Removal(
        f"{_WRITING}/records.py", "        rules.guard_other(write, request, there, after, is_whole=False)\n", ""
    ),
    "test_a_virtual_node_that_is_hidden_is_not_named": Removal(
        f"{_WRITING}/ends.py", "given_nodes(write, request, are_virtual=True) if write.is_guarded else ():", "():"
    ),
    "test_a_counterpart_is_moved_by_who_may_move_it": Removal(
        f"{_WRITING}/rules.py", "if key_of(before) != key_of(after):", "if False:"
    ),
    "test_the_own_fields_of_a_counterpart_are_held_too": Removal(
        f"{_WRITING}/rules.py", "return put if is_put else Change(", "return Change("
    ),
    "test_a_log_that_another_program_has_written_into_is_not_copied": Removal(
        "keygraph/engines/sqlite/engine.py", "                files.void_log()\n", "                pass\n"
    ),
    "test_who_stops_before_it_has_noticed_that_the_file_is_back_takes_no_writes_along": Removal(
        "keygraph/engines/sqlite/engine.py", "files.problem() and ", ""
    ),
    "test_a_file_that_is_replaced_right_before_a_stop_gets_no_log": Removal(
        "keygraph/engines/sqlite/engine.py", "for task in () if self._is_log_empty else (self._look, int):", "for task in ():"
    ),
    "test_nobody_makes_a_log_beside_a_file_that_another_process_uses": Removal(
        "keygraph/engines/sqlite/files.py", "            return True\n        except OSError:", "            return False\n        except OSError:"
    ),
    "test_a_file_that_came_back_after_another_one_was_there_is_not_used": Removal(
        "keygraph/engines/sqlite/files.py", " if is_same else is_used:", " if is_same else False:"
    ),
    "test_a_proxy_is_trusted_by_its_address_of_ipv4": Removal(
        "server/keygraph_server/processes/server.py", "both_forms(config.forwarded_allow_ips)", "config.forwarded_allow_ips"
    ),
    "test_a_stop_does_not_wait_for_a_collector_that_hangs": Removal(
        "server/keygraph_server/telemetry/tracing.py", "async with asyncio.timeout(_LAST_SECONDS)", "async with asyncio.timeout(None)"
    ),
    "test_a_process_ends_while_the_system_looks_up_a_name": Removal(
        "keygraph/daemon_thread.py", "daemon=True", "daemon=False"
    ),
    "test_all_who_wait_for_an_address_wait_for_one_lookup": Removal(
        "keygraph/engines/dynamodb/http1.py", "if self._looking_up is None:", "if True:"
    ),
    "test_a_log_that_somebody_reads_is_left_later": Removal(
        "keygraph/engines/sqlite/engine.py", "self._leaving is None or self._leaving.done()", "self._leaving is None"
    ),
    "test_a_log_that_is_cut_while_a_write_ends_is_noticed": Removal(
        "keygraph/engines/sqlite/files.py", "return self._has_gap(state) and", "return False and"
    ),
    "test_who_has_put_another_file_there_keeps_its_log": Removal(
        "keygraph/engines/sqlite/engine.py", " and not files.is_another_there:", ":"
    ),
    "test_no_signal_waits_for_a_worker_that_hangs": Removal(
        "server/keygraph_server/processes/workers.py",
        "                self._kill(worker)\n                return",
        "                return",
    ),
    "test_no_file_is_created_beside_a_log_that_is_left": Removal(
        f"{_COMMANDS}/first_start.py", "check_files(file)", "pass"
    ),
    "test_what_is_acknowledged_before_another_process_takes_the_log_away_is_kept": Removal(
        "keygraph/engines/sqlite/engine.py", "if not self._files.was_replaced:", "if False:"
    ),
    "test_what_another_program_writes_beside_items_is_no_fault": Removal(
        "keygraph/engines/sqlite/catalogue.py", "except FAULTS as error:", "except ZeroDivisionError as error:"
    ),
    "test_no_new_file_gets_the_log_of_one_that_is_in_use": Removal(
        "keygraph/engines/sqlite/engine.py", "check_files(self._path)", "pass"
    ),
    "test_one_that_cannot_start_stops_no_others": Removal(
        "server/keygraph_server/processes/workers.py", " and not self._has_served:", ":"
    ),
    "test_another_file_gets_a_log_of_its_own": Removal(
        "keygraph/engines/sqlite/engine.py", "            self._files.unlink_log()", "            pass"
    ),
    "test_a_file_that_is_moved_or_deleted_is_noticed": Removal(
        "keygraph/engines/sqlite/engine.py", "self._files.check()", "pass"
    ),
    "test_a_file_that_somebody_else_writes_into_is_noticed": Removal(
        "keygraph/engines/sqlite/files.py", "and found.st_mtime_ns != before[1]", "and False"
    ),
    # --- Behind the server
    "test_an_answer_of_the_fan_out_without_an_end_is_not_read": Removal(
        _FAN_OUT, "        parser_class=LimitedParser,\n", ""
    ),
    "test_of_a_collectors_answer_little_is_read": Removal(
        "server/keygraph_server/telemetry/tracing.py", ".raw.read(_ANSWER_BYTES)", ".raw.read()"
    ),
    "test_of_what_a_source_writes_without_an_end_little_is_read": Removal(
        "keygraph/engines/dynamodb/client.py", "_CREDENTIALS_BYTES = 64 * 1024", "_CREDENTIALS_BYTES = 2**30"
    ),
    "test_an_answer_that_nobody_waits_for_keeps_no_connection": Removal(
        "keygraph/engines/dynamodb/client.py", "self._response.close()  # it would keep its connection", "pass"
    ),
    "test_a_role_is_not_requested_of_a_server_with_another_name": Removal(
        "keygraph/engines/dynamodb/client.py", "config.http_session_cls = VerifyingSession", "pass"
    ),
    "test_of_very_many_shards_few_are_read_at_once": Removal(
        "keygraph/engines/dynamodb/engine.py", "asyncio.Semaphore(concurrency)", "asyncio.Semaphore(50_000)"
    ),
    "test_a_long_line_of_shards_is_put_in_order_at_once": Removal(
        "keygraph/dynamo/streams.py", "and name not in line:", "and name not in [*line]:"
    ),
    "test_no_answer_is_a_fault_of_the_server": Removal(
        "keygraph/engines/dynamodb/answers.py", "except Exception as error:", "except ZeroDivisionError as error:"
    ),
    "test_an_answer_is_not_mostly_framing": Removal(
        "keygraph/engines/dynamodb/http1.py", "if is_mostly_framing(", "if False and is_mostly_framing("
    ),
    "test_more_items_than_were_requested_are_not_decoded": Removal(
        "keygraph/engines/dynamodb/answers.py", "if len(typed) > most:", "if False:"
    ),
    "test_of_a_long_refusal_little_is_read": Removal(
        "keygraph/engines/dynamodb/errors.py", "return text[:_MOST_CHARACTERS] if", "return text if"
    ),
    "test_interim_answers_have_an_end": Removal(
        "keygraph/engines/dynamodb/http1.py", "if self._interim > _INTERIM_ANSWERS:", "if False:"
    ),
    "test_an_answer_without_an_end_is_not_read": Removal(
        "keygraph/engines/dynamodb/client.py", "if len(received) > self._most:", "if False:"
    ),
    "test_what_is_no_json_is_no_empty_answer": Removal(
        "keygraph/engines/dynamodb/client.py", '{_TEXT: response["body"]}', "await super()._do_parse(response, shape)"
    ),
    "test_a_redirect_is_not_followed": Removal(
        "keygraph/engines/dynamodb/client.py", "allow_redirects=False", "allow_redirects=True"
    ),
    # --- Subscriptions
    "test_pages_of_other_origins_and_other_hosts_get_no_websocket": Removal(
        f"{_HTTP}/sockets.py", "if is_foreign(scope, options.origins):", "if False:"
    ),
    "test_a_refused_websocket_is_answered_like_any_request": Removal(
        f"{_HTTP}/middleware.py", 'message["headers"] += [*self._added, (_ID_FIELD, request_id.encode())]', "pass"
    ),
    "test_who_never_says_who_they_are_is_closed": Removal(
        f"{_HTTP}/sockets.py", "if not self._is_known:\n                        raise _Closed(_INIT", "if False:\n                        raise _Closed(_INIT"
    ),
    "test_a_websocket_without_subscriptions_is_closed_after_a_while": Removal(
        f"{_HTTP}/sockets.py", 'raise _Closed(_NORMAL, "no subscription for a while")', "self._ends += 1_000"
    ),
    "test_pings_keep_no_connection_open": Removal(
        f"{_HTTP}/sockets.py", "                    del message  # the next one may come much later\n", "                    del message\n                    self._ends = time() + idle\n"
    ),
    "test_a_websocket_with_subscriptions_is_not_closed_for_others": Removal(
        f"{_CONNECTIONS}/websocket.py", "        self._is_kept = is_kept\n", ""
    ),
    "test_frames_are_read_a_few_at_a_time": Removal(
        f"{_CONNECTIONS}/websocket.py", "_FRAMES_AT_ONCE = 16", "_FRAMES_AT_ONCE = 100_000"
    ),
    "test_messages_and_handshakes_begin_in_the_rounds_of_requests": Removal(
        f"{_CONNECTIONS}/websocket.py",
        "            if rounds().has_to_wait(self._reads_for):\n",
        "            if False:\n",
        Removal(f"{_HTTP}/sockets.py", "await rounds().begin(self._address)", "pass"),
    ),
    "test_an_endless_message_is_closed": Removal(
        f"{_CONNECTIONS}/websocket.py", "elif is_mostly_framing(", "elif False and is_mostly_framing("
    ),
    "test_large_messages_are_held_until_their_operations_end": Removal(
        f"{_HTTP}/sockets.py", "        self._settle()\n        return True\n", "        self._settle()\n        return False\n"
    ),
    "test_who_pings_and_never_reads_is_closed": Removal(
        f"{_CONNECTIONS}/websocket.py", "if self._unsent.is_stuck(", "if False and self._unsent.is_stuck("
    ),
    "test_a_client_that_reads_no_large_answer_holds_nothing_of_others": Removal(
        f"{_HTTP}/sockets.py", "        lease.answers()\n        lease.let_go()\n", ""
    ),
    "test_what_breaks_the_protocol_is_closed": Removal(
        f"{_HTTP}/sockets.py", "if len(text) > self._most_bytes:", "if False:"
    ),
    "test_who_sends_a_message_that_is_too_large_learns_it": Removal(
        f"{_CONNECTIONS}/websocket.py", "        self.transport.write_eof()\n", "        self.transport.close()\n"
    ),
    "test_an_answer_is_counted_once_more_as_it_is_written": Removal(
        f"{_HTTP}/graphql_http.py", "if len(text) > self.limits.answer_limit:", "if False:"
    ),
    "test_the_next_one_is_refused_and_queries_go_on": Removal(
        f"{_RESOLVERS}/live/queries.py", "Admission(self.limits.live_operations, 0)", "Admission(1_000_000, 0)"
    ),
    "test_one_client_has_half_of_them": Removal(
        f"{_RESOLVERS}/live/queries.py", "self._places.enter_at_once(dict.fromkeys(clients))", "self._places.enter_at_once()"
    ),
    "test_what_they_keep_is_limited": Removal(
        f"{_RESOLVERS}/live/queries.py", "return self.held + more > most or", "return False and",
        Removal(f"{_RESOLVERS}/live/queries.py", "if own > self.limits.live_memory // _OF_ONE or", "if"),
    ),
    "test_one_client_has_half_of_the_memory": Removal(
        f"{_RESOLVERS}/live/queries.py", "or (bool(client) and self._held_of[client] + more > most // 2)", ""
    ),
    "test_small_values_in_variables_are_counted": Removal(
        f"{_RESOLVERS}/live/queries.py", "_VALUE_BYTES = 100", "_VALUE_BYTES = 0"
    ),
    "test_a_run_that_reads_too_much_is_ended_while_it_reads": Removal(
        f"{_RESOLVERS}/live/queries.py", "if own > self.limits.live_memory // _OF_ONE or", "if"
    ),
    "test_no_answer_is_kept_for_a_subscription_that_waits": Removal(
        f"{_HTTP}/sockets.py", "                del answer  # it would be kept until the next one comes\n", ""
    ),
    "test_those_who_listen_to_one_document_share_it": Removal(
        f"{_HTTP}/graphql_http.py", "        if self.requested is not None:\n            variables", "        if False:\n            variables"
    ),
    "test_one_client_does_not_keep_others_from_running": Removal(
        f"{_RESOLVERS}/live/queries.py", "if not each or running[each] < half", "if True"
    ),
    "test_many_listeners_get_an_answer_in_turns": Removal(
        f"{_RESOLVERS}/live/queries.py", "if number % _SENT_AT_ONCE == 0:", "if False:"
    ),
    "test_subscriptions_that_end_at_once_do_so_in_turns": Removal(
        f"{_HTTP}/sockets.py",
        "rounds().enter(self._address).add_done_callback(self._end_next)",
        "self._end_next()",
    ),
    "test_a_run_that_is_canceled_before_it_begins_gives_its_place_back": Removal(
        f"{_RESOLVERS}/live/queries.py", "operation.task.add_done_callback(partial(self._ended, operation, payer))", "asyncio.create_task(asyncio.sleep(0))"
    ),
    "test_changes_that_cannot_be_followed_are_requested_once_a_second": Removal(
        f"{_RESOLVERS}/live/queries.py", "if self._failure is not None and time", "if False and time"
    ),
    "test_a_change_that_cannot_be_matched_runs_all": Removal(
        f"{_RESOLVERS}/live/queries.py", "                self._run_all()\n                continue\n", "                continue\n"
    ),
    "test_a_sum_that_is_too_large_for_a_while_is_right_again_after_it": Removal(
        "keygraph/changes/counting.py", "if (stored is None and at is None and not is_new)", "if (stored is None and not is_new)"
    ),
    "test_no_subscription_leaves_garbage": Removal(
        f"{_RESOLVERS}/live/queries.py", "        del operation.reads  # they reference it: it would wait for the garbage collector\n", ""
    ),
    "test_a_slow_listener_gets_the_newest_answer_and_none_in_between": Removal(
        f"{_RESOLVERS}/live/listeners.py", "self._is_behind = True", "self._is_behind = False"
    ),
    "test_streams_have_half_of_the_connections": Removal(
        f"{_HTTP}/graphql_http.py", "streams.enter_at_once(lease.clients)", "Admission(1_000, 0).enter_at_once()",
        Removal(f"{_HTTP}/graphql_http.py", "                streams.leave(place)", "                pass"),
    ),
    "test_two_tokens_of_a_viewer_share_no_answer_unless_their_claims_are_the_same": Removal(
        f"{_RESOLVERS}/live/queries.py", "request.viewer or {}])", '{**(request.viewer or {}), "exp": 0}])'
    ),
    "test_a_token_that_expires_ends_the_operation": Removal(
        f"{_RESOLVERS}/live/queries.py", "if left is not None:", "if False:"
    ),
    "test_a_token_that_has_expired_by_a_new_time_of_day_gets_no_answer": Removal(
        f"{_RESOLVERS}/live/queries.py", "if self.is_expired(operation.request.viewer):", "if False:"
    ),
    "test_what_is_read_for_somebody_who_has_left_is_not_kept": Removal(
        f"{_RESOLVERS}/live/matching.py", "ReadIndex(self._index.table), lambda _: None", "self._index, self._counted"
    ),
    "test_no_line_has_the_query_string_of_a_websocket": Removal(
        _LOGS, "elif str(record.msg).startswith(_OF_WEBSOCKET) and", "elif False and"
    ),
    "test_the_first_message_sets_no_header_of_a_gateway": Removal(
        f"{_HTTP}/sockets.py", "if options.tokens_in_messages:", "if True:"
    ),
    "test_what_is_no_change_is_named_in_the_log_and_skipped": Removal(
        _FAN_OUT, "except Exception as error:\n                entry", "except ZeroDivisionError as error:\n                entry"
    ),
    "test_entries_of_many_values_are_read_few_at_a_time_and_beside_others": Removal(
        _FAN_OUT, "if length > _SHORT_BYTES:", "if False:"
    ),
    "test_a_reader_notices_that_entries_were_deleted": Removal(
        _FAN_OUT, "if not is_there and", "if False and"
    ),
    "test_without_a_valkey_server_queries_go_on": Removal(
        "server/keygraph_server/services.py", "            # A read waits for changes itself.", "            await PublishedChanges(client, service.store.table).start_at_latest()"
    ),
    "test_addresses_that_are_refused": Removal(
        _FAN_OUT, "            \"it is no address such as", "            f\"{address!r} is no address such as"
    ),
    "test_what_another_program_puts_in_the_place_of_a_note_stops_no_worker": Removal(
        "keygraph/changes/ledger.py", "return 0 < number < _MOST and number % 1 == 0", "return True"
    ),
    "test_many_values_are_compared_and_written_beside_others": Removal(
        f"{_RESOLVERS}/live/queries.py", "await in_daemon_thread(lambda: [each.compared() for each in found])", "[each.compared() for each in found]"
    ),
    "test_no_text_of_an_operation_is_obeyed_by_a_terminal": Removal(
        f"{_COMMANDS}/explain.py", "text = printable_lines(steps_text(explanation.steps, console.width))", "text = steps_text(explanation.steps, console.width)"
    ),
    "test_each_viewer_hears_what_they_see": Removal(
        f"{_RESOLVERS}/read/changes.py", "visible = [_allowed(access, each, None) for each in images]", "pass"
    ),
    "test_a_method_tells_no_change_of_what_a_viewer_may_not_read": Removal(
        f"{_RESOLVERS}/read/changes.py", "or not (method.is_plain and all", "or not (False and all"
    ),
    "test_a_method_that_fails_tells_no_change_to_a_live_query": Removal(
        f"{_RESOLVERS}/live/queries.py", "if found[0] in ids else", "if not found[0] else"
    ),
    "test_arguments_are_compared_only_with_what_the_viewer_may_read": Removal(
        f"{_RESOLVERS}/read/changes.py", "*(_allowed(access, image, name) for name in wanted.restricted)", "True"
    ),
    "test_changes_that_a_viewer_does_not_see_lose_none_of_theirs": Removal(
        f"{_RESOLVERS}/live/queries.py", "is_visible = kind is not UNDECIDED", "is_visible = True"
    ),
    "test_who_reads_slowly_is_told_that_events_were_lost": Removal(
        f"{_RESOLVERS}/live/listeners.py", "len(self._waiting_answers) < queries.limits.live_events and", "True and"
    ),
    "test_what_becomes_hidden_is_taken_away": Removal(
        f"{_RESOLVERS}/live/queries.py", "access=access,", "access=access, viewer={},"
    ),
}  # fmt: skip


def named_test(row: list[str]) -> tuple[str, str]:
    """The file and the name of the test that a row names."""
    file, _, name = row[2].strip("`").partition("::")
    return file, name


def _fails_without(copy: Path, file: str, name: str) -> str | None:
    """Removes the defence of a test in the copy, runs the test, and puts the defence back. Why it does not show; None if it does."""
    before: dict[Path, str] = {}
    removal: Removal | None = REMOVALS[name]
    while removal is not None:
        path = copy / removal.file
        text = path.read_text("utf-8")
        before.setdefault(path, text)
        if removal.text not in text:
            return f"{removal.file} does not have the text that would be removed"
        path.write_text(text.replace(removal.text, removal.instead), "utf-8")
        removal = removal.other
    paths = os.pathsep.join(str(copy / each) for each in (".", "resolvers", "server", "examples"))
    command = [sys.executable, "-m", "pytest", "-q", "-x", f"--timeout={_SECONDS}", file, "-k", name]
    try:
        found = subprocess.run(
            command,
            cwd=copy,
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=_SECONDS + 30,
        )
    except subprocess.TimeoutExpired:
        return "it neither failed nor passed in time"
    finally:
        for path, text in before.items():
            path.write_text(text, "utf-8")
    # 1: tests were run, and some failed.
    return None if found.returncode == 1 else f"pytest ended with {found.returncode}: {found.stdout[-300:]}"


def main(word: str = "") -> int:
    """Tries all; how many do not show."""
    from tests.test_security_page import ROWS

    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in _COPIED:
            shutil.copytree(
                ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules")
            )
        for each in ROOT.iterdir():
            if each.is_file():
                shutil.copy(each, copy / each.name)
        for name in (".venv", ".dynamodb-local"):
            if (ROOT / name).exists():
                (copy / name).symlink_to((ROOT / name).resolve())
        for file, name in map(named_test, ROWS):
            if word in name:
                reason = _fails_without(copy, file, name)
                wrong += reason is not None
                told = "fails without it" if reason is None else f"DOES NOT FAIL: {reason}"
                sys.stdout.write(f"{name}: {told}\n")
                sys.stdout.flush()
    return wrong


if __name__ == "__main__":
    sys.exit(min(1, main(*sys.argv[1:])))
