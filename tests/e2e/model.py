# SPDX-License-Identifier: MIT
"""A language model that says what a script tells it: OpenAI's chat completions, streamed, on the loopback interface.

The script is a list of tool calls (name, arguments), one for each turn; after the last one the model says "done". How far a
conversation is, its own length tells: a repeated request gets the same answer.
"""

import http.server
import json
import threading


class Model:
    def __init__(self, script):
        self.script = script
        self.answers = {}  # turn -> what the harness said the tool answered
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def answer(self, request):
        """The deltas of one reply. A request without tools asks for a title."""
        if not request.get("tools"):
            return [({"role": "assistant", "content": "title"}, None), ({}, "stop")]
        turn = sum(m["role"] == "assistant" for m in request["messages"])
        for m in request["messages"]:
            if m["role"] == "tool":
                self.answers[int(m["tool_call_id"].rpartition("_")[2])] = m["content"]
        if turn >= len(self.script):
            return [({"role": "assistant", "content": "done"}, None), ({}, "stop")]
        name, arguments = self.script[turn]
        call = {"index": 0, "id": f"call_{turn}", "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)}}
        return [({"role": "assistant", "content": None, "tool_calls": [call]}, None), ({}, "tool_calls")]

    def _handler(self):
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                for delta, reason in model.answer(request):
                    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": request["model"],
                             "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
                    self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
                self.wfile.write(b"data: [DONE]\n\n")
        return Handler
