"""Headers that keep browsers from doing more with an answer than to read it."""

from __future__ import annotations

NO_CONTENT_POLICY = (
    b"content-security-policy",
    b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
)
"""For answers without a policy of their own, which are no pages."""
SECURE_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
"""For every answer. A policy for its content comes with them."""
HTTPS_ONLY = (b"strict-transport-security", b"max-age=31536000")
"""For every answer in production. Browsers ignore it in one that did not come by HTTPS."""
