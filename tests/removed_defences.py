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
_RESOLVERS = "resolvers/keygraph_resolvers"
_WRITING = "keygraph/writing"


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
        f"{_RESOLVERS}/plan/document_limits.py", "if size.introspected > self._most_introspected:", "if False:"
    ),
    "test_a_hostile_document_keeps_nobody_waiting": Removal(
        f"{_RESOLVERS}/service.py", "or len(text) <= _SHORT_TEXT:", "or True:"
    ),
    "test_introspection_keeps_nobody_waiting_and_is_kept": Removal(
        f"{_RESOLVERS}/aside.py",
        "return await asyncio.get_running_loop().run_in_executor(self._thread, context.run, work, *arguments)",
        "return context.run(work, *arguments)",
    ),
    "test_a_large_body_is_read_at_once": Removal(
        f"{_HTTP}/graphql_http.py",
        "_LONG_NUMBER in alike",
        '__import__("re").search(rb"[0-9]{19}", text)',
    ),
    "test_a_page_keeps_nobody_waiting": Removal("keygraph/turns.py", "await budget.wait()\n        began", "pass\n        began"),
    "test_a_walk_over_many_lists_keeps_nobody_waiting": Removal(
        f"{_RESOLVERS}/steps/walks/walk.py", "if len(wanted) > _IN_A_TURN:", "if False:"
    ),
    "test_lists_of_one_node_again_and_again_keep_nobody_waiting": Removal(
        f"{_RESOLVERS}/read/scheduler.py", "if self._worked > most:", "if False:"
    ),
    "test_operations_that_work_for_long_do_so_one_after_the_other": Removal(
        f"{_RESOLVERS}/read/scheduler.py", "TURN_SECONDS - (of_all.worked - before)", "TURN_SECONDS"
    ),
    "test_what_is_made_of_one_item_again_and_again_is_held": Removal(
        f"{_RESOLVERS}/read/meter.py", "self._hold(_PAGE_BYTES + _EDGE_BYTES * edges)", "pass"
    ),
    "test_large_operations_read_on_one_at_a_time": Removal(
        f"{_RESOLVERS}/read/run.py", "await self.meter.holding.wait_to_answer()", "pass"
    ),
    "test_work_on_many_items_has_a_budget": Removal(
        "keygraph/turns.py", "self.spent > self.seconds", "False"
    ),
    "test_any_operation": Removal(
        f"{_RESOLVERS}/naming/global_ids.py",
        "    if found is None:\n        asked",
        "    if False:\n        asked",
    ),
    "test_what_may_cost_more_than_the_limit_is_refused": Removal(
        f"{_RESOLVERS}/service.py", "bound.total.read_units > self._cost_limit", "False"
    ),
    "test_an_operation_whose_items_are_larger_than_declared_is_stopped": Removal(
        f"{_RESOLVERS}/read/meter.py",
        "self.is_exceeded = self.budget is not None and self.read_units > self.budget",
        "pass",
    ),
    "test_aliases_of_one_text": Removal(
        f"{_RESOLVERS}/answer/completion.py", "if self._left < 0:", "if False:"
    ),
    "test_others_are_refused_before_they_are_read": Removal(
        "server/keygraph_server/documents/known.py",
        "if self._accepted is Accepted.ANY or asked.query in self._trusted_texts:",
        "if True:",
    ),
    "test_they_take_no_more_bytes_than_the_setting_says": Removal(
        "keygraph/kept.py", "while self.bytes > self._most:", "while False:"
    ),
    "test_there_are_no_others": Removal(
        "keygraph/keys/types.py", '@kept("numbers", 4096, 700)', "@__import__('functools').lru_cache"
    ),
    # --- Connections
    "test_a_head_without_an_end": Removal(
        f"{_CONNECTIONS}/httptools_protocol.py",
        "if self.reading is HEAD and self.received > limit:",
        "if False:",
    ),
    "test_a_request_says_its_host_once": Removal(
        f"{_CONNECTIONS}/httptools_protocol.py", "if hosts > 1 or (", "if False and ("
    ),
    "test_who_sends_and_never_reads": Removal(
        f"{_CONNECTIONS}/guarded.py",
        "return not self.flow.write_paused and not self.has_requests_waiting()",
        "return True",
        Removal(
            f"{_CONNECTIONS}/httptools_protocol.py",
            "if len(self.bodies) > settings.max_pipelined:",
            "if False:",
        ),
    ),
    "test_many_who_ask_for_much_and_never_read": Removal(
        f"{_RESOLVERS}/read/meter.py", "_LARGE_AT_ONCE = 1\n", "_LARGE_AT_ONCE = 1_000\n"
    ),
    "test_half_bodies": Removal(
        f"{_CONNECTIONS}/gate.py", "if self.held > self.settings.connection_memory:", "if False:"
    ),
    "test_half_heads_lock_nobody_out": Removal(
        f"{_CONNECTIONS}/gate.py", "if address is None or connection.address == address:", "if False:"
    ),
    "test_who_is_gone_takes_no_time_of_a_busy_server": Removal(
        f"{_CONNECTIONS}/guarded.py", "if len(self.tasks) > _FEW and has_ended(self.transport):", "if False:"
    ),
    "test_the_time_of_an_operation_begins_with_its_first_byte": Removal(
        f"{_HTTP}/graphql_http.py", "began=began,", "began=None,"
    ),
    "test_a_body_has_its_time_and_may_be_slow": Removal(
        f"{_CONNECTIONS}/guarded.py", "elif seconds > settings.body_timeout:", "elif False:"
    ),
    "test_an_answer_must_be_taken": Removal(
        f"{_CONNECTIONS}/guarded.py", "elif now - self._taken_at > self.gate.settings.write_timeout:", "elif False:"
    ),
    "test_an_answer_that_is_not_taken_is_counted_whole": Removal(
        "server/keygraph_server/listening.py", 'if hasattr(socket, "TCP_NOTSENT_LOWAT"):', "if False:"
    ),
    "test_a_busy_loop_takes_many_connections_in_a_turn": Removal(
        "server/keygraph_server/processes/server.py", "_AT_ONCE = 16", "_AT_ONCE = 0"
    ),
    "test_an_offer_to_change_the_protocol_is_ignored": Removal(
        f"{_CONNECTIONS}/httptools_protocol.py", "if self.parser.should_upgrade():", "if False:"
    ),
    "test_a_short_value_is_read_once_and_a_long_one_is_not_kept": Removal(
        f"{_HTTP}/header_values.py", "if len(value) <= _LONGEST_KEPT", "if True"
    ),
    "test_a_larger_one_in_chunks_is_not_read_to_its_end": Removal(
        f"{_HTTP}/middleware.py", 'count += len(message.get("body", b""))', "count += 0"
    ),
    "test_what_neither_runs_nor_waits_is_refused_at_once": Removal(
        f"{_RESOLVERS}/admission.py", "if self._places.locked() and self.waiting", "if False and self.waiting"
    ),
    "test_thousands_on_a_dynamodb_that_hangs": Removal(
        f"{_RESOLVERS}/admission.py", "if self._places.locked() and self.waiting", "if False and self.waiting"
    ),
    "test_in_an_outage_a_trickle_is_sent": Removal(
        "keygraph/engines/dynamodb/gate.py",
        "if self._is_probing or self.clock.time() < self._probed_at:",
        "if False:",
    ),
    "test_many_who_ask_are_one_look": Removal(
        f"{_HTTP}/readiness.py", "if self._looking is None and (", "if True or ("
    ),
    "test_operations_are_given_up_where_all_hold_too_much": Removal(
        f"{_RESOLVERS}/read/meter.py", "if memory.held > memory.limit and self.held > _ALWAYS_HELD:", "if False:"
    ),
    # --- Browsers
    "test_what_a_foreign_page_can_send_is_refused": Removal(
        f"{_HTTP}/graphql_http.py", "if is_forgeable(headers, self._options.origins):", "if False:"
    ),
    "test_no_other_may": Removal(
        f"{_HTTP}/origins.py",
        "return self.pattern is None or self.pattern.fullmatch(origin) is not None",
        "return True",
    ),
    "test_it_may_only_be_a_query": Removal(
        f"{_HTTP}/graphql_http.py", "only_queries=exchange.is_get", "only_queries=False"
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
    "test_every_file_is_pinned_by_version_and_hash": Removal(
        "server/keygraph_server/playground/manifest.json", '"sha384-', '"sha000-'
    ),
    # --- What may be seen
    "test_a_hidden_node_is_as_if_it_did_not_exist": Removal(
        f"{_RESOLVERS}/read/access.py",
        "if rule is True:",
        "if True:",
        Removal(
            f"{_RESOLVERS}/read/access.py",
            "if access.of_item(each.record, each.identity, each.item or {}):",
            "if True:",
        ),
    ),
    "test_a_hidden_field_cannot_be_filtered_by": Removal(
        f"{_RESOLVERS}/read/connection.py", "raise forbidden(record, name)", "pass"
    ),
    "test_the_cost_does_not_tell_what_is_there": Removal(
        f"{_RESOLVERS}/service.py", "sent = None if is_secretive else self.meter.sent", "sent = self.meter.sent"
    ),
    "test_a_plan_is_nobodys": Removal(
        f"{_RESOLVERS}/read/run.py",
        "self.access = Permissions(self.viewer, self._is_there) if",
        "self.access = self.graph.__dict__.setdefault('one', Permissions(self.viewer, self._is_there)) if",
    ),
    "test_no_race_gets_past_a_rule": Removal(
        f"{_WRITING}/rules.py", "conditions = [each.condition for each in found]", "conditions = []"
    ),
    "test_the_version_of_a_hidden_record_is_not_told": Removal(
        f"{_WRITING}/rules.py",
        "hidden = missing(request) if identity is None else",
        "hidden = _forbidden(record, 'update', request.where) if identity is None else",
    ),
    "test_an_idempotency_key_is_its_viewers": Removal(
        f"{_RESOLVERS}/steps/write.py", "asker = run.viewer.identity", 'asker = ""'
    ),
    "test_a_public_key_is_no_shared_secret": Removal(
        "server/keygraph_server/auth/tokens.py",
        '{"require": ["exp"],',
        '{"require": ["exp"], "verify_signature": False,',
    ),
    "test_a_new_key_is_fetched_and_invented_ids_are_not": Removal(
        "server/keygraph_server/auth/keys.py", "now - self._tried > wait", "True"
    ),
    "test_no_cache_keeps_what_one_viewer_saw": Removal(
        f"{_HTTP}/graphql_http.py", "is_open = options.viewer_of is None and", "is_open ="
    ),
    "test_a_cursor_of_another_list": Removal(
        f"{_RESOLVERS}/read/cursors.py", "self._about = [_dump(about)]", "self._about = []"
    ),
    "test_a_cursor_tells_no_key": Removal(
        f"{_RESOLVERS}/read/cursors.py",
        "return _text(self._cipher.encrypt(plain, self._about))",
        "return _text(plain)",
    ),
    "test_what_cannot_be_used_is_named": Removal(
        "server/keygraph_server/settings/serving.py", "min_length=SECRET_CHARACTERS", "min_length=1"
    ),
    "test_an_unexpected_error_shows_nothing_but_its_id": Removal(
        f"{_HTTP}/middleware.py", "_answer([internal_error(error)], 500)", "_answer([{'message': str(error)}], 500)"
    ),
    "test_names_are_not_suggested": Removal(
        "server/keygraph_server/services.py", "suggestions=settings.suggestions", "suggestions=True"
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
        return None
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
