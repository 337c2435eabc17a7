"""How long a test waits for what must come: long, for it costs nothing when all is well.

What is waited for comes at once on a machine of its own; on one that is shared it may take many times as long
and be right all the same. A test waits for a thing and never for a time.
"""

from __future__ import annotations

import asyncio

PATIENCE_S = 60.0


def soon() -> asyncio.Timeout:
    return asyncio.timeout(PATIENCE_S)
