# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders chat templates of a folder with transformers and with the colibri command, and compares.

Usage: compare_templates.py COLIBRI FOLDER   (FOLDER: *.jinja, such as those of published models)
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from transformers.utils.chat_template_utils import render_jinja_template

TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "Weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "Name"},
                                                    "days": {"type": "integer"}}, "required": ["city"]}}}]
SYSTEM = {"role": "system", "content": "You are brief."}
RESULT = {"role": "tool", "name": "get_weather", "tool_call_id": "call00001", "content": '{"t": 21}'}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def user(text):
    return {"role": "user", "content": text}


def reply(text, **more):
    return {"role": "assistant", "content": text, **more}


def call(**arguments):
    return [{"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}]


CASES = {
    "user": {"messages": [user("Hi <b>\n there")]},
    "system": {"messages": [SYSTEM, user("Hi"), reply("Hello!"), user("  Who?  ")]},
    "think tags": {"messages": [user("Hi"), reply("<think>\nhm\n</think>\n\nHello!"), user("More")]},
    "reasoning": {"messages": [user("Hi"), reply("Hello", reasoning_content="hm", thinking="hm"), user("More")]},
    "tools": {"messages": [SYSTEM, user("Weather?")], "tools": TOOLS},
    "call": {"messages": [user("Weather?"), reply("", tool_calls=call(city="Köln", days=2)), RESULT,
                          reply("21 degrees."), user("Thanks")], "tools": TOOLS},
    "call without text": {"messages": [user("Weather?"), reply(None, tool_calls=call(city="Köln")), RESULT],
                          "tools": TOOLS},
    "no generation": {"messages": [user("Hi"), reply("Hello")], "generate": False},
    "empty": {"messages": [user("")]},
    "keywords": {"messages": [user("Hi")], "enable_thinking": False, "reasoning_effort": "high", "thinking": True},
    "parts": {"messages": [user([{"type": "text", "text": "Hi"}, {"type": "text", "text": "you"}])]},
    "wrong order": {"messages": [reply("first"), reply("second")]},
}


def reference(template, messages, tools, generate, more):
    # apply_chat_template removes entries that are None before rendering.
    messages = [{key: value for key, value in m.items() if value is not None} for m in messages]
    try:
        return render_jinja_template(conversations=[messages], tools=tools, chat_template=template,
                                     add_generation_prompt=generate, **more)[0][0]
    except Exception:  # templates can raise any exception
        return None


def ours(colibri, path, messages, tools, generate, more):
    context = {"messages": messages, **more, **({"tools": tools} if tools else {})}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(context, file)
        file.flush()
        run = subprocess.run([colibri, "template", path, "--messages", file.name,
                              *([] if generate else ["--no-generation-prompt"])], capture_output=True)
    return run.stdout.decode() if run.returncode == 0 else None


colibri, folder = sys.argv[1], Path(sys.argv[2])
equal = refused = different = 0
for path in sorted(folder.glob("*.jinja")):
    template = path.read_text(encoding="utf-8")
    for name, case in CASES.items():
        more = {**TOKENS, **{k: v for k, v in case.items() if k not in ("messages", "tools", "generate")}}
        arguments = (case["messages"], case.get("tools"), case.get("generate", True), more)
        want, got = reference(template, *arguments), ours(colibri, path, *arguments)
        if want == got:
            equal += want is not None
            refused += want is None
            continue
        different += 1
        print(f"{path.name}, {name}: {want!r:.300}\n  but {got!r:.300}")
print(f"{equal} equal, {refused} refused by both, {different} different")
sys.exit(different > 0)
