/** The methods of A2A in paths of HTTP+JSON and of gRPC. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import { classifyRequest } from "../../../../src/proxy/a2a/classify.ts";

const PATHS: readonly (readonly [request: string, method: string | undefined, suffix?: string])[] = [
  ["POST /message:send", "SendMessage", "/message:send"],
  ["POST /team/v1/message:stream?x=1", "SendStreamingMessage", "/message:stream"],
  ["POST /rest/tenant/message%3Asend", "SendMessage", "/message%3Asend"],
  ["GET /rest/tasks", "ListTasks", "/tasks"],
  ["GET /rest/tasks/a:b", "GetTask", "/tasks/a:b"],
  ["POST /rest/tasks/a:cancel", "CancelTask", "/tasks/a:cancel"],
  ["GET /rest/tasks/a:subscribe", "SubscribeToTask", "/tasks/a:subscribe"],
  ["POST /v1/tasks/a:subscribe", "SubscribeToTask", "/tasks/a:subscribe"],
  ["POST /tasks/a/pushNotificationConfigs", "CreateTaskPushNotificationConfig", "/tasks/a/pushNotificationConfigs"],
  ["GET /tasks/a/pushNotificationConfigs", "ListTaskPushNotificationConfigs", "/tasks/a/pushNotificationConfigs"],
  ["GET /tasks/a/pushNotificationConfigs/b", "GetTaskPushNotificationConfig", "/tasks/a/pushNotificationConfigs/b"],
  [
    "DELETE /tasks/a/pushNotificationConfigs/b",
    "DeleteTaskPushNotificationConfig",
    "/tasks/a/pushNotificationConfigs/b",
  ],
  ["GET /rest/extendedAgentCard", "GetExtendedAgentCard", "/extendedAgentCard"],
  ["GET /rest/v1/card", "GetExtendedAgentCard", "/v1/card"],
  ["GET /rest/card", undefined],
  ["PUT /tasks/a", undefined],
  ["GET /message:send", undefined],
];

for (const [request, method, suffix] of PATHS)
  test(`the method of ${request} is ${method}`, () => {
    const [verb = "", originalTarget = ""] = request.split(" ");
    const found = classifyRequest({ method: verb, originalTarget, requestHeaders: new HeaderList() });
    assert.deepEqual(found, method === undefined ? undefined : { kind: "path-call", method, suffix });
  });

test("a call of gRPC has the name that ends its path; other services pass", () => {
  const classify = (path: string) =>
    classifyRequest({
      method: "POST",
      originalTarget: path,
      requestHeaders: new HeaderList(["content-type", "application/grpc"]),
    });
  assert.deepEqual(classify("/lf.a2a.v1.A2AService/GetTask"), { kind: "grpc-call", method: "GetTask" });
  assert.deepEqual(classify("/a2a.v1.A2AService/TaskSubscription"), { kind: "grpc-call", method: "TaskSubscription" });
  assert.equal(classify("/grpc.health.v1.Health/Check"), undefined);
});

test("any other POST is a call whose method is in its body, and cards have their paths", () => {
  const classify = (method: string, originalTarget: string) =>
    classifyRequest({ method, originalTarget, requestHeaders: new HeaderList() });
  assert.deepEqual(classify("POST", "/any"), { kind: "json-rpc-call" });
  assert.deepEqual(classify("GET", "/a/.well-known/agent.json?x"), { kind: "card", suffix: "/.well-known/agent.json" });
  assert.deepEqual(classify("POST", "/.well-known/agent.json"), { kind: "json-rpc-call" });
  assert.equal(classify("GET", "/a.well-known/agent-card.jsonx"), undefined);
});
