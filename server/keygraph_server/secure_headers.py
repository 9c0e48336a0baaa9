"""Headers that keep browsers from doing anything with an answer except reading it."""

from __future__ import annotations

NO_CONTENT_POLICY = (
    b"content-security-policy",
    b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
)
"""For answers without their own policy, which are not pages."""
NO_STORE = (b"cache-control", b"no-store")
"""For answers that do not say whether they may be kept."""
SECURE_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
"""For every answer, in addition to a policy for its content."""
HTTPS_ONLY = (b"strict-transport-security", b"max-age=31536000")
"""For every answer in production. Browsers ignore it in an answer that did not use HTTPS."""
