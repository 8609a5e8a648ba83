# SPDX-License-Identifier: GPL-3.0-or-later
"""The openai package as a client of `colibri serve`. Usage: openai_client.py COLIBRI MODEL"""
import os
import re
import signal
import subprocess
import sys

import openai


def main(colibri, model):
    env = dict(os.environ, COLIBRI_API_KEY="secret")
    server = subprocess.Popen([colibri, "serve", model, "--port", "0", "--json"], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        for line in server.stderr:
            if found := re.search(r"at (http://\S+),", line):
                break
        talk(openai.OpenAI(base_url=found[1], api_key="secret", max_retries=0))
        refused(found[1])
    finally:
        server.send_signal(signal.SIGTERM)
        out, _ = server.communicate(timeout=60)
    assert server.returncode == 0, server.returncode
    assert '"completed"' in out, out
    print("ok")


def talk(client):
    name = client.models.list().data[0].id
    assert client.models.retrieve(name).id == name
    ask = dict(model=name, messages=[{"role": "system", "content": "Be short."},
                                     {"role": "user", "content": "What is an expert?"}],
               max_tokens=20, temperature=0)
    whole = client.chat.completions.create(**ask)
    assert whole.choices[0].message.role == "assistant"
    assert whole.choices[0].finish_reason in ("stop", "length")
    assert 0 < whole.usage.completion_tokens <= 20
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens

    text, usage, reason = "", None, None
    for chunk in client.chat.completions.create(**ask, stream=True,
                                                stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reason = choice.finish_reason or reason
    assert text == whole.choices[0].message.content, (text, whole)
    assert reason == whole.choices[0].finish_reason
    assert usage.completion_tokens == whole.usage.completion_tokens

    with client.chat.completions.create(**{**ask, "max_tokens": 2000}, stream=True,
                                        extra_body={"ignore_eos": True}) as stream:
        next(iter(stream))  # and disconnects

    completion = client.completions.create(model=name, prompt="Once upon a time", max_tokens=8,
                                           temperature=0.8, top_p=0.9, seed=3, stop=["\n\n"])
    again = client.completions.create(model=name, prompt="Once upon a time", max_tokens=8,
                                      temperature=0.8, top_p=0.9, seed=3, stop=["\n\n"])
    assert completion.choices[0].text == again.choices[0].text
    pieces = client.completions.create(model=name, prompt="Once upon a time", max_tokens=8,
                                       temperature=0, stream=True)
    assert "".join(c.choices[0].text for c in pieces)

    logprobs(client, name, ask)

    for error, change in [(openai.NotFoundError, {"model": "other"}),
                          (openai.BadRequestError, {"n": 2}),
                          (openai.BadRequestError, {"top_logprobs": 2}),
                          (openai.BadRequestError, {"messages": []})]:
        try:
            client.chat.completions.create(**{**ask, **change})
        except error as told:
            assert told.body["message"], told
        else:
            raise AssertionError(f"{change} was accepted")


def logprobs(client, name, ask):
    whole = client.chat.completions.create(**ask, logprobs=True, top_logprobs=3)
    content = whole.choices[0].logprobs.content
    assert len(content) == whole.usage.completion_tokens
    for token in content:
        assert token.logprob <= 0 and len(token.top_logprobs) == 3
        assert token.top_logprobs[0].logprob == token.logprob  # greedy
    assert bytes(b for t in content for b in t.bytes or []).decode(errors="replace").startswith(
        whole.choices[0].message.content)
    streamed = [t for c in client.chat.completions.create(**ask, logprobs=True, top_logprobs=3,
                                                          stream=True)
                for choice in c.choices if choice.logprobs for t in choice.logprobs.content]
    assert streamed == content, (streamed, content)
    told = client.completions.create(model=name, prompt="Once upon a time", max_tokens=8,
                                     temperature=0, logprobs=2).choices[0].logprobs
    assert len(told.tokens) == len(told.token_logprobs) == len(told.text_offset) == 8
    assert all(top[token] == value for token, value, top
               in zip(told.tokens, told.token_logprobs, told.top_logprobs))


def refused(url):
    try:
        openai.OpenAI(base_url=url, api_key="wrong", max_retries=0).models.list()
    except openai.AuthenticationError:
        return
    raise AssertionError("a wrong key was accepted")


if __name__ == "__main__":
    main(*sys.argv[1:])
