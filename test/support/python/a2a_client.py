"""The A2A client of the Python SDK: for each line of JSON on its standard input it uses everything that an agent offers
in one binding, and prints what it got as one line of JSON.

A job names the URL of the agent, which its card is below, the binding, and headers of requests over HTTP.
"""

import asyncio
import json
import sys
import traceback
import uuid

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
)


def say(text):
    message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)])
    return SendMessageRequest(message=message)


def urls_of(card):
    return [[i.protocol_version, i.protocol_binding, i.url] for i in card.supported_interfaces]


async def attempt(awaitable):
    """Returns the name of the error that a call of the client ends with."""
    try:
        return str(await awaitable)
    except Exception as error:
        return type(error).__name__


async def use(job, http):
    card = await A2ACardResolver(http, job["url"]).get_agent_card()
    config = ClientConfig(
        httpx_client=http,
        grpc_channel_factory=grpc.aio.insecure_channel,
        supported_protocol_bindings=[job["binding"]],
        use_client_preference=True,
        streaming=False,
    )
    client = ClientFactory(config).create(card)
    config.streaming = True
    streaming = ClientFactory(config).create(card)
    report = {"interfaces": urls_of(card)}

    # The factory's clients share the configuration, so that streams are switched off where one answer is wanted.
    config.streaming = False
    [sent] = [response async for response in client.send_message(say("hello"))]
    report["sent"] = [artifact.parts[0].text for artifact in sent.task.artifacts]
    got = await client.get_task(GetTaskRequest(id=sent.task.id))
    report["got"] = got.id == sent.task.id
    report["unknown"] = await attempt(client.get_task(GetTaskRequest(id="nothing")))
    report["listed"] = await attempt(count_tasks(client, sent.task.context_id))

    config.streaming = True
    # In 0.3 a stream that is joined begins with what happens next, so that a client cannot know that it has joined.
    has_join = card.supported_interfaces[0].protocol_version != "0.3"
    kinds = []
    async for event in streaming.send_message(say("wait")):
        kinds.append(event.WhichOneof("payload"))
        if len(kinds) > 1:
            continue
        # The agent waits until the client has the first event, so a stream that is held never ends.
        task_id = event.task.id
        joined = streaming.subscribe(SubscribeToTaskRequest(id=task_id))
        report["joined"] = (await anext(joined)).task.id == task_id if has_join else None
        config.streaming = False
        await anext(client.send_message(say("release")))
        config.streaming = True
    report["streamed"] = sorted(set(kinds))
    report["followed"] = sorted({e.WhichOneof("payload") async for e in joined}) if has_join else None

    push = TaskPushNotificationConfig(task_id=task_id, id="mine", url="http://127.0.0.1:1/hook", token="t")
    asked = GetTaskPushNotificationConfigRequest(task_id=task_id, id="mine")
    listed = ListTaskPushNotificationConfigsRequest(task_id=task_id)
    report["push"] = await attempt(url_of(client.create_task_push_notification_config(push)))
    report["pushed"] = await attempt(url_of(client.get_task_push_notification_config(asked)))
    report["pushes"] = await attempt(count_pushes(client, listed))
    removal = DeleteTaskPushNotificationConfigRequest(task_id=task_id, id="mine")
    report["removed"] = await attempt(client.delete_task_push_notification_config(removal))
    report["extended"] = urls_of(await client.get_extended_agent_card(GetExtendedAgentCardRequest()))
    return report


async def count_tasks(client, context_id):
    return len((await client.list_tasks(ListTasksRequest(context_id=context_id))).tasks)


async def url_of(config):
    return (await config).url


async def count_pushes(client, request):
    return len((await client.list_task_push_notification_configs(request)).configs)


async def main():
    for line in sys.stdin:
        job = json.loads(line)
        async with httpx.AsyncClient(timeout=60, headers=job["headers"]) as http:
            try:
                report = await use(job, http)
            except Exception:
                report = {"failure": traceback.format_exc()[-1500:]}
        print(json.dumps(report), flush=True)


asyncio.run(main())
