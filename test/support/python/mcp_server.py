"""A FastMCP server with one item of each kind, over Streamable HTTP and over HTTP+SSE; prints both ports as one line.

It serves versions with sessions and 2026-07-28: in the former a tool asks the client while it runs, in the latter it
returns its question and is called again with the answer.
"""

import asyncio
import socket
import sys

import uvicorn
from fastmcp import Context, FastMCP
from mcp_types import (
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

NAME = sys.argv[1]
MODERN = "2026-07-28"
SCHEMA = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}

server = FastMCP(NAME, instructions=f"instructions of {NAME}")


@server.tool
def echo(text: str) -> str:
    return f"{NAME}: {text}"


@server.tool
async def count(to: int, ctx: Context) -> str:
    for at in range(1, to + 1):
        await ctx.report_progress(at, to)
    return f"counted to {to}"


@server.tool
async def say(text: str, ctx: Context) -> str:
    await ctx.info(text)
    return "said"


async def answer_to(ctx: Context, request, ask):
    """Returns the client's answer, or what to return in order to get it."""
    if ctx.session.protocol_version != MODERN:
        return await ask()
    answers = ctx.input_responses
    if answers is None:
        return InputRequiredResult(input_requests={"question": request}, request_state=NAME)
    if ctx.request_state != NAME:
        raise ValueError("the state did not come back")
    return answers["question"]


@server.tool
async def ask_model(prompt: str, ctx: Context):
    messages = [SamplingMessage(role="user", content=TextContent(type="text", text=prompt))]
    request = CreateMessageRequest(params=CreateMessageRequestParams(messages=messages, max_tokens=10))
    answer = await answer_to(ctx, request, lambda: ctx.session.create_message(messages, max_tokens=10))
    return answer if isinstance(answer, InputRequiredResult) else f"model: {answer.content.text}"


@server.tool
async def ask_user(question: str, ctx: Context):
    request = ElicitRequest(params=ElicitRequestFormParams(message=question, requested_schema=SCHEMA))
    answer = await answer_to(ctx, request, lambda: ctx.session.elicit_form(question, SCHEMA))
    return answer if isinstance(answer, InputRequiredResult) else f"user: {answer.content['color']}"


@server.tool
async def ask_roots(ctx: Context):
    answer = await answer_to(ctx, ListRootsRequest(), lambda: ctx.session.list_roots())
    return answer if isinstance(answer, InputRequiredResult) else " ".join(str(root.uri) for root in answer.roots)


@server.prompt
def greet(who: str) -> str:
    return f"hello {who} from {NAME}"


@server.resource("note://shared/1")
def note() -> str:
    return f"note of {NAME}"


@server.resource("page://shared/{number}")
def page(number: str) -> str:
    return f"page {number} of {NAME}"


@server.completion
def complete(ref, argument, context):
    return Completion(values=[each for each in ("anna", "anton", "berta") if each.startswith(argument.value)])


async def main():
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    apps = [server.http_app(path="/mcp"), server.http_app(path="/sse", transport="sse")]
    print(*(listener.getsockname()[1] for listener in listeners), flush=True)
    await asyncio.gather(
        *(
            uvicorn.Server(uvicorn.Config(app, log_level="error")).serve(sockets=[listener])
            for app, listener in zip(apps, listeners)
        )
    )


asyncio.run(main())
