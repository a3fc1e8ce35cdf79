"""The model hub: what is there, what was fetched from it, and fetching it.

Nothing is sent to the hub but what a download needs: its library is told so before it is imported.
"""

import os

os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
