"""The FastMCP client: for each line of JSON on its standard input it uses everything that a server offers, and prints
what it got as one line of JSON.

A job names the URL, the mode of the connection, and the text that names of the server begin with.
"""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from mcp_types import PromptReference, ResourceTemplateReference


def name_of(items, ending, job):
    """Returns the one name or URI of a list that begins as the job says and ends so."""
    [found] = [each for each in items if each.startswith(job["prefix"]) and each.endswith(ending)]
    return found


async def use(job):
    progress, logged = [], []

    async def on_progress(at, total, message):
        progress.append([at, total])

    async def on_log(message):
        logged.append([message.level, message.data["msg"] if isinstance(message.data, dict) else message.data])

    async def on_sampling(messages, params, context):
        return f"{messages[0].content.text}!"

    async def on_elicitation(message, response_type, params, context):
        return ElicitResult(action="accept", content={"color": f"blue for {message}"})

    client = Client(
        job["url"],
        mode=job["mode"],
        roots=["file:///workspace"],
        sampling_handler=on_sampling,
        elicitation_handler=on_elicitation,
        progress_handler=on_progress,
        log_handler=on_log,
    )
    async with client:
        report = {"version": client.session.protocol_version}
        if job["mode"] == "legacy":
            report["ping"] = await client.ping()
            await client.set_logging_level("info")
        tools = sorted(tool.name for tool in await client.list_tools())

        async def call(tool, **arguments):
            result = await client.call_tool(name_of(tools, tool, job), arguments, raise_on_error=False)
            return [result.is_error, [block.text for block in result.content]]

        report["tools"] = [tool for tool in tools if tool.startswith(job["prefix"])]
        report["echo"] = await call("echo", text="häll\u2028o")
        report["count"] = await call("count", to=3)
        report["progress"] = progress
        report["say"] = await call("say", text="loud")
        report["logged"] = logged
        report["ask_model"] = await call("ask_model", prompt="why")
        report["ask_user"] = await call("ask_user", question="me")
        report["ask_roots"] = await call("ask_roots")
        report["wrong"] = (await call("echo", number=1))[0]

        prompts = [prompt.name for prompt in await client.list_prompts()]
        greet = name_of(prompts, "greet", job)
        report["greet"] = [m.content.text for m in (await client.get_prompt(greet, {"who": "you"})).messages]
        uris = [str(resource.uri) for resource in await client.list_resources()]
        report["note"] = [[str(c.uri), c.text] for c in await client.read_resource(name_of(uris, "note://shared/1", job))]
        templates = [template.uri_template for template in await client.list_resource_templates()]
        page = name_of(templates, "page://shared/{number}", job)
        read = await client.read_resource(page.replace("{number}", "7"))
        report["page"] = [[str(c.uri), c.text] for c in read]
        for key, ref in (
            ("completed", PromptReference(type="ref/prompt", name=greet)),
            ("completed_page", ResourceTemplateReference(type="ref/resource", uri=page)),
        ):
            report[key] = (await client.complete(ref, {"name": "who" if key == "completed" else "number", "value": "an"})).values
    return report


async def main():
    for line in sys.stdin:
        try:
            report = await use(json.loads(line))
        except Exception as error:
            report = {"failure": repr(error)}
        print(json.dumps(report), flush=True)


asyncio.run(main())
