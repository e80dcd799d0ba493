/** Requests to several targets: one that hangs or is down holds up nobody for ever. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ProxyError } from "../../../../../src/proxy/exchange/errors.ts";
import { ERROR_CODES, McpError } from "../../../../../src/proxy/mcp/mcp-error.ts";
import { readMessage, type Message } from "../../../../../src/proxy/mcp/message/message.ts";
import { answerWith, responseTo, streamOf } from "../../../../../src/proxy/mcp/multiplex/answers.ts";
import { DownTargets } from "../../../../../src/proxy/mcp/multiplex/down-targets.ts";
import { fanOut } from "../../../../../src/proxy/mcp/multiplex/fan-out.ts";
import type { McpAnswer } from "../../../../../src/proxy/mcp/targets/target.ts";
import { readAll, scriptedTarget } from "../../../../support/servers/scripted-target.ts";

type Send = () => Promise<McpAnswer>;

const REQUEST: Message = messageOf('{"jsonrpc":"2.0","id":1,"method":"tools/list"}');

function messageOf(text: string): Message {
  const message = readMessage(Buffer.from(text));
  return "kind" in message ? message : assert.fail(message.reason);
}

const answers: Send = () => Promise.resolve(answerWith(responseTo("1", "{}")));
const hangs: Send = () => new Promise(() => undefined);
const unreachable: Send = () => {
  const cause = new ProxyError("upstream_unreachable");
  return Promise.reject(new McpError(ERROR_CODES.internal, "the server cannot be reached", { status: 500, cause }));
};

/** An answer that begins and does not end. */
function endless(onCancel: () => void): Send {
  const { promise, resolve } = Promise.withResolvers<void>();
  async function* read(): AsyncGenerator<Message> {
    yield messageOf('{"jsonrpc":"2.0","method":"notifications/message","params":{}}');
    await promise;
  }
  const cancel = (): void => {
    onCancel();
    resolve();
  };
  return () => Promise.resolve(streamOf(read(), cancel));
}

async function ask(sends: Readonly<Record<string, Send>>, failOpen: boolean, down = new DownTargets()) {
  const merged: string[] = [];
  const answer = await fanOut(
    Object.keys(sends).map((name) => ({ target: scriptedTarget(name, {}), message: REQUEST })),
    {
      failOpen,
      debug: undefined,
      down,
      limitMs: 20,
      send: ({ target }) => sends[target.name]?.() ?? assert.fail(),
      view: () => undefined,
      merge(results) {
        merged.push(...results.map(({ target }) => target.name));
        return responseTo("1", "{}");
      },
    },
  );
  await readAll(answer);
  return merged;
}

test("a target that hangs is left out, or fails the request", async () => {
  assert.deepEqual(await ask({ one: answers, two: hangs }, true), ["one"]);
  await assert.rejects(ask({ one: answers, two: hangs }, false), /did not answer in time/);
  let cancelled = 0;
  const stuck = endless(() => cancelled++);
  assert.deepEqual(await ask({ one: answers, two: stuck }, true), ["one"]);
  assert.ok(cancelled > 0);
  await assert.rejects(ask({ one: answers, two: endless(() => undefined) }, false), /did not answer in time/);
});

test("an answer that comes too late is given up", async () => {
  const late = Promise.withResolvers<McpAnswer>();
  await assert.rejects(ask({ one: () => late.promise }, false), /did not answer in time/);
  const cancelled = new Promise<void>((resolve) => late.resolve(streamOf([], resolve)));
  await cancelled;
});

test("a target that could not be reached is asked again after a while, or when no other is left", async () => {
  let nowMs = 1_000;
  let asked = 0;
  const counted: Send = () => {
    asked++;
    return unreachable();
  };
  const down = new DownTargets(() => nowMs);
  for (let at = 0; at < 3; at++) assert.deepEqual(await ask({ one: answers, two: counted }, true, down), ["one"]);
  assert.equal(asked, 1);
  await assert.rejects(ask({ two: counted }, true, down), /cannot be reached/);
  assert.equal(asked, 2);
  nowMs += 5_000;
  await ask({ one: answers, two: counted }, true, down);
  assert.equal(asked, 3);
});

test("what a target says to one caller does not make it look down to others", async () => {
  const down = new DownTargets();
  let asked = 0;
  const refuses: Send = () => {
    asked++;
    return Promise.reject(new McpError(ERROR_CODES.internal, "a message of the server is too large", { status: 500 }));
  };
  for (let at = 0; at < 2; at++) await ask({ one: answers, two: refuses }, true, down);
  assert.equal(asked, 2);
});
