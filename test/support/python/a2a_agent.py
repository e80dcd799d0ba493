"""An agent of the Python SDK of A2A in JSON-RPC, HTTP+JSON and gRPC, each in 1.0 and 0.3; prints the ports of HTTP and gRPC.

It repeats what it is told, and refuses requests that did not come through a gateway. A message that begins with "wait" is
answered after one that says "release". The first line of its standard input is the authority of its gRPC interface.
"""

import asyncio
import socket
import sys

import grpc
import uvicorn
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, Task, TaskState, TaskStatus
from a2a.types import a2a_pb2_grpc
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount

BASE = "/agents/echo"
released = asyncio.Event()


class Echo(AgentExecutor):
    async def execute(self, context, event_queue):
        said = context.get_user_input()
        await event_queue.enqueue_event(
            Task(
                id=context.task_id,
                context_id=context.context_id,
                status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
                history=[context.message],
            )
        )
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        if said == "release":
            released.set()
        elif said.startswith("wait"):
            await released.wait()
            released.clear()
        await updater.add_artifact([Part(text=said)])
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


class Guard:
    """Refuses what came past the gateway."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and b"cdn-loop" not in dict(scope["headers"]):
            return await PlainTextResponse("this request came past the gateway", 418)(scope, receive, send)
        await self.app(scope, receive, send)


class GrpcGuard(grpc.aio.ServerInterceptor):
    async def intercept_service(self, continuation, details):
        if "cdn-loop" not in dict(details.invocation_metadata):
            raise RuntimeError("this call came past the gateway")
        return await continuation(details)


def card_of(versions, urls):
    bindings = ("JSONRPC", "HTTP+JSON", "GRPC")
    return AgentCard(
        name="echo",
        description="Repeats.",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding=binding, protocol_version=version)
            for version in versions
            for binding, url in zip(bindings, urls)
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True, extended_agent_card=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="echo", name="echo", description="Repeats.", tags=["echo"])],
    )


async def is_allowed(url):
    return True


async def main():
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    grpc_server = grpc.aio.server(interceptors=[GrpcGuard()])
    print(port, grpc_server.add_insecure_port("127.0.0.1:0"), flush=True)
    grpc_url = (await asyncio.to_thread(sys.stdin.readline)).strip()

    routes = []
    for name, versions in (("both", ["1.0", "0.3"]), ("older", ["0.3"])):
        base = f"{BASE}/{name}"
        card = card_of(versions, [f"http://127.0.0.1:{port}{base}/rpc", f"http://127.0.0.1:{port}{base}/rest", grpc_url])
        handler = DefaultRequestHandler(
            Echo(),
            InMemoryTaskStore(),
            card,
            push_config_store=InMemoryPushNotificationConfigStore(),
            extended_agent_card=card,
            push_url_validator=is_allowed,
        )
        routes.append(
            Mount(
                base,
                routes=[
                    *create_agent_card_routes(card),
                    *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True),
                    *create_rest_routes(handler, enable_v0_3_compat=True, path_prefix="/rest"),
                ],
            )
        )
        if name == "both":
            a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), grpc_server)
            a2a_v0_3_pb2_grpc.add_A2AServiceServicer_to_server(CompatGrpcHandler(handler), grpc_server)
    await grpc_server.start()
    app = Starlette(routes=routes, middleware=[Middleware(Guard)])
    print("ready", flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="error")).serve(sockets=[listener])


asyncio.run(main())
