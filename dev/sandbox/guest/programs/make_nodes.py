"""Makes /dev/nvidia* at boot: nodes that can be opened and hold nothing (the same as /dev/null)."""

import json
import os
import stat

MODE, LIKE_NULL = stat.S_IFCHR | 0o666, os.makedev(1, 3)

with open("/etc/practice/gpu.json") as file:
    count = json.load(file)["count"]
os.umask(0)
for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", *(f"nvidia{i}" for i in range(count))):
    os.mknod(f"/dev/{name}", MODE, LIKE_NULL)
