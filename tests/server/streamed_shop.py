"""The commerce example with the review count of a product kept by the stream; no index is ordered by it then."""

from pathlib import Path

import keygraph_examples.commerce

_ORDERED = '    gsi2("PRODUCT", "{review_count:010d}#{product_id}", lists="most_reviewed_products"),\n'
_COUNT = 'review_count: int | None = counts("reviews")'

_text = Path(keygraph_examples.commerce.__file__).read_text("utf-8")
assert _ORDERED in _text
assert _COUNT in _text
_text = _text.replace(_ORDERED, "").replace(_COUNT, f'{_COUNT[:-1]}, kept="stream")')
exec(compile(_text, __file__, "exec"))
