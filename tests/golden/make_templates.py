# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders chat templates and small feature templates with the reference environment.

Reads templates/*.jinja, writes templates/feature_*.jinja and template_cases.json.
The formats are described in README.md.
"""

import copy
import json
import traceback
from datetime import datetime
from pathlib import Path
from unittest import mock

import jinja2
from transformers.utils import chat_template_utils

from template_features import ERRORS, FEATURES, RARE, VARIABLES

HERE = Path(__file__).resolve().parent
TEMPLATES = HERE / "templates"


def fixed_clock(now):
    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.fromisoformat(now)

    return mock.patch.object(chat_template_utils, "datetime", Clock)


def render(template, inputs, now):
    """Does the same as apply_chat_template(tokenize=False) after it has found the template."""
    inputs = copy.deepcopy(inputs)
    messages = inputs.pop("messages")
    if len(messages) == 0:
        raise ValueError("Cannot apply chat template to an empty conversation. Provide at least one message.")
    chat = chat_template_utils._normalize_chat_messages(messages)
    with fixed_clock(now or "2000-01-01T00:00:00"):
        rendered, _ = chat_template_utils.render_jinja_template(
            conversations=[chat], chat_template=template, **inputs)
    return rendered[0]


def describe_error(error):
    if isinstance(error, jinja2.TemplateSyntaxError):
        return {"kind": "syntax", "line": error.lineno, "message": error.message}
    if isinstance(error, SyntaxError):  # raised when the compiled template is parsed
        return {"kind": "syntax", "line": None, "message": error.msg}
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename in ("<template>", "<unknown>")]
    if type(error) is jinja2.TemplateError:
        kind = "raise"
    elif isinstance(error, jinja2.UndefinedError):
        kind = "undefined"
    else:
        kind = "runtime"
    return {"kind": kind, "line": lines[-1] if lines else None, "message": str(error)}


def make_case(name, template, inputs, now=None):
    case = {"name": name, "template": template, "input": inputs}
    if now:
        case["now"] = now
    source = (TEMPLATES / template).read_text(encoding="utf-8")
    try:
        case["expected"] = render(source, inputs, now)
    except Exception as error:  # the reference's errors are of many types
        case["error"] = describe_error(error)
    return case


def chat(*turns, generate=True, **more):
    """turns: (role, content) or a whole message."""
    messages = [turn if isinstance(turn, dict) else {"role": turn[0], "content": turn[1]} for turn in turns]
    return {"messages": messages, "add_generation_prompt": generate, **more}


WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Weather of a city: \"now\" or <later> & é 天",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "City's name"},
        "days": {"type": "integer", "default": 1},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"}},
        "required": ["city"]}}}
SEARCH = {"type": "function", "function": {
    "name": "search", "description": "",
    "parameters": {"type": "object", "properties": {
        "queries": {"type": "array", "items": {"type": "string"}, "nullable": True},
        "filter": {"type": "object", "properties": {"lang": {"type": ["string", "null"]}, "exact": {"type": "boolean"}}},
        "threshold": {"type": "number", "default": 0.5}}, "required": []}}}
CLOCK = {"type": "function", "function": {"name": "clock", "description": "The time", "parameters": {"type": "object", "properties": {}}}}

USER, SYSTEM = ("user", "Hello, who are you?"), ("system", "You are terse.")
BOT = ("assistant", "I am a model.")
UNICODE = ("user", "  Ünïcödé 日本語 😀\n\ttabs & <tags> \"quotes\" 'single' \\ back {{ not a tag }} {% nor this %}  ")


def call(name, arguments, id=None):
    out = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return {"id": id, **out} if id else out


def calls(*tool_calls, content=None):
    message = {"role": "assistant", "tool_calls": list(tool_calls)}
    return message if content is None else {"role": "assistant", "content": content, "tool_calls": list(tool_calls)}


def tool(content, **more):
    return {"role": "tool", "content": content, **more}


def conversations():
    """(name, input) pairs common to all chat templates."""
    yield "user", chat(USER)
    yield "no_generation", chat(USER, BOT, generate=False)
    yield "system_user", chat(SYSTEM, USER)
    yield "turns", chat(SYSTEM, USER, BOT, ("user", "And now?"), ("assistant", "Still.\n"), ("user", "Bye"))
    yield "unicode", chat(UNICODE, ("assistant", " ответ\u00a0\u3000 "), UNICODE)
    yield "empty_content", chat(("system", ""), ("user", ""))
    yield "two_users", chat(USER, USER)
    yield "assistant_first", chat(BOT, USER)
    yield "late_system", chat(USER, BOT, SYSTEM, USER)
    yield "unknown_role", chat(USER, ("wizard", "Abracadabra"))
    yield "ends_with_assistant", chat(USER, BOT)
    yield "no_messages", chat()


def chat_cases():
    tokens = {
        "qwen3.jinja": {"eos_token": "<|im_end|>"},
        "olmoe.jinja": {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"},
        "mixtral.jinja": {"bos_token": "<s>", "eos_token": "</s>"},
        "mistral_tools.jinja": {"bos_token": "<s>", "eos_token": "</s>"},
        "llama3.jinja": {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
        "chatml.jinja": {},
        "macros.jinja": {},
    }
    for template, special in tokens.items():
        for name, inputs in conversations():
            now = "2025-01-09T07:05:03" if template == "llama3.jinja" else None
            yield make_case(f"{template[:-6]}/{name}", template, {**inputs, **special}, now)

    turn = chat(USER, calls(call("get_weather", {"city": "Zürich", "days": 3, "exact": True, "x": None, "f": 1.0, "big": 1e30})),
                tool("{\"t\": 21}"), ("assistant", "21 degrees."), ("user", "Thanks"), tools=[WEATHER, SEARCH])
    thinking = chat(USER, ("assistant", "<think>\nold thought\n</think>\n\nOld answer"), ("user", "More"),
                    ("assistant", "<think>\nnew thought\n</think>\n\nNew answer"), generate=False)
    many = chat(SYSTEM, USER, calls(call("a", {}), call("b", "{\"raw\": 1}"), {"name": "c", "arguments": {"k": [1, 2]}}, content="Calling."),
                tool("one"), tool("two"), tool("three"), tools=[CLOCK])
    qwen = {
        "tools": turn, "tools_system": {**turn, "messages": [{"role": "system", "content": "S"}, *turn["messages"]]},
        "thinking": thinking, "no_thinking": chat(USER, enable_thinking=False), "yes_thinking": chat(USER, enable_thinking=True),
        "reasoning_content": chat(USER, {"role": "assistant", "content": "\n\nA", "reasoning_content": "\nbecause\n"}, generate=False),
        "reasoning_alias": chat(USER, {"role": "assistant", "content": "A", "thinking": "by another name"}, generate=False),
        "null_content": chat(USER, {"role": "assistant", "content": None, "tool_calls": [call("a", {"b": {}})]}, tool("r")),
        "many_tools": many, "empty_tools": chat(USER, tools=[]),
        "tool_response_as_user": chat(USER, BOT, ("user", "<tool_response>\nx\n</tool_response>"), ("assistant", "<think>t</think>y"), generate=False),
        "only_think_open": chat(USER, ("assistant", "<think>unfinished"), generate=False),
        "content_parts": chat({"role": "user", "content": [{"type": "text", "text": "part"}]}),
    }
    for name, inputs in qwen.items():
        yield make_case(f"qwen3/{name}", "qwen3.jinja", inputs)

    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    with_id = chat(USER, calls(call("get_weather", {"city": "Paris"}, "abcdefghi"), call("clock", {}, "123456789")),
                   tool("22", tool_call_id="abcdefghi"), tool({"h": 3}, tool_call_id="123456789"), ("assistant", "  22 at 3  "), ("user", "ok"), tools=[WEATHER, CLOCK], **tokens)
    mistral = {
        "tools": with_id, "short_id": chat(USER, calls(call("f", {}, "short")), **tokens),
        "no_id": chat(USER, calls(call("f", {})), **tokens),
        "tools_system": {**with_id, "messages": [{"role": "system", "content": "S"}, *with_id["messages"]]},
    }
    for name, inputs in mistral.items():
        yield make_case(f"mistral_tools/{name}", "mistral_tools.jinja", inputs)

    tokens = {"bos_token": "<|begin_of_text|>"}
    llama = {
        "tools": {**turn, **tokens}, "tools_in_system": {**turn, **tokens, "tools_in_user_message": False},
        "date_string": chat(USER, date_string="4 Jul 2031", **tokens),
        "many_calls": {**many, **tokens}, "tools_no_message": chat(SYSTEM, tools=[CLOCK], **tokens),
        "tool_json": chat(USER, calls(call("f", {"a": "ü"})), tool({"k": ["ü", 1, None]}), tool([1, 2.5, "x"]), **tokens),
    }
    for name, inputs in llama.items():
        yield make_case(f"llama3/{name}", "llama3.jinja", inputs, "2024-12-31T23:59:59")

    parts = {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}]}
    yield make_case("macros/tools", "macros.jinja", chat(USER, parts, tools=[WEATHER, SEARCH, CLOCK], reasoning_effort="high"))
    yield make_case("macros/one_tool", "macros.jinja", chat(parts, generate=False, tools=[CLOCK]))


def feature_cases():
    for old in TEMPLATES.glob("feature_*.jinja"):
        old.unlink()
    base = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}], "add_generation_prompt": False}
    for group, must_fail in ((FEATURES, False), (ERRORS, True)):
        for name, source in group.items():
            file = f"feature_{name}.jinja"
            (TEMPLATES / file).write_text(source, encoding="utf-8", newline="")
            now = "2024-02-05T09:08:07" if "strftime_now" in source else None
            # Only variables that the template uses, to keep the file short.
            used = {key: value for key, value in VARIABLES.items() if key in source}
            case = make_case(f"feature/{name}", file, {**base, **used}, now)
            if name in RARE:
                case["rare"] = True
            if must_fail != ("error" in case):
                print("unexpected:", name, case.get("error", case.get("expected")))
            yield case


def main():
    cases = [*chat_cases(), *feature_cases()]
    names = [case["name"] for case in cases]
    assert RARE <= {name.removeprefix("feature/") for name in names}
    assert len(names) == len(set(names))
    lines = ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
    (HERE / "template_cases.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    errors = sum("error" in case for case in cases)
    print(f"{len(cases)} cases, {errors} of them errors, {len(list(TEMPLATES.glob('*.jinja')))} templates")


if __name__ == "__main__":
    main()
