"""An MCP server (over stdin and stdout) with one tool that asks the user to fill in a form, and returns the answer."""

from __future__ import annotations

import json
import sys
from typing import Any

FORM = {
    "type": "object",
    "properties": {
        "port": {"type": "integer", "title": "Port", "minimum": 1, "maximum": 65535},
        "is_public": {"type": "boolean", "title": "Public"},
        "mode": {"type": "string", "enum": ["slow", "fast"]},
        "note": {"type": "string", "maxLength": 20},
    },
    "required": ["port"],
}


def reply(identity: object, result: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", "id": identity, "result": result}), flush=True)


def main() -> None:
    call: object = None
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        method, identity = message.get("method"), message.get("id")
        if method == "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "form", "version": "1"}
            reply(identity, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        elif method == "tools/list":
            tool = {"name": "configure", "description": "Configure it", "inputSchema": {"type": "object"}}
            reply(identity, {"tools": [tool]})
        elif method == "tools/call":
            call = identity
            asked = {"message": "About the server", "requestedSchema": FORM}
            print(
                json.dumps({"jsonrpc": "2.0", "id": "form", "method": "elicitation/create", "params": asked}),
                flush=True,
            )
        elif identity == "form":
            text = json.dumps(message.get("result"), sort_keys=True)
            reply(call, {"content": [{"type": "text", "text": text}]})
        elif identity is not None:
            reply(identity, {})


if __name__ == "__main__":
    main()
