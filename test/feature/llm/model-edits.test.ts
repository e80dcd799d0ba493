/** Edits of GwModels through the file source while chats run: no request is lost, and open streams end whole. */
import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import { test } from "node:test";
import { documents, startGateway } from "../../support/gateway/gateway.ts";
import { model, MODEL_GATEWAY, readRefusal, serveModels, service, virtual } from "../../support/gateway/models.ts";
import { call, type Answer } from "../../support/clients/http.ts";
import { contextOf, type ProofContext } from "../../support/proofs/prove.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

test("edits of models under load lose no request", async (t) => {
  const { asked, gateway, one, two } = await serveModels(contextOf(t), model("a"), virtualOf("a"));
  const services = [service("one", one.port), service("two", two.port)];
  let isEditing = true;
  const answers: string[] = [];
  const ask = async (name: string): Promise<void> => {
    while (isEditing) answers.push(await asked(name));
  };
  const clients = ["a", "auto", "a", "auto"].map(ask);
  for (let edit = 0; edit < 20; edit++) {
    const to = edit % 2 === 0 ? "two" : "one";
    await gateway.change(
      documents(MODEL_GATEWAY, ...services, model("a", { to }), model(`new-${edit}`), virtualOf("a")),
    );
  }
  isEditing = false;
  // A request that is lost, or answered with an error, fails its client.
  await Promise.all(clients);
  assert.deepEqual([...new Set(answers)].sort(), ["one a", "two a"]);
});

function virtualOf(target: string): string {
  return virtual("auto", `weighted: {targets: [{modelRef: {name: ${target}}}]}`);
}

const PIECES = [1, 2, 3, 4];
/** Paths of clients: one of the format of the services, and one whose streams are translated. */
const PATHS = ["/v1/chat/completions", "/v1/messages"];

/** Starts a service whose streams name it in each event. @param gate what a stream awaits after each of its events */
async function startStreams(context: ProofContext, tag: string, gate: () => Promise<unknown>) {
  const upstream = await startUpstream(async (asked, response) => {
    for await (const _ of asked);
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const piece of PIECES) {
      const choice = { index: 0, delta: { content: `${tag}${piece};` }, finish_reason: null };
      response.write(`data: ${JSON.stringify({ model: tag, choices: [choice] })}\n\n`);
      await gate();
    }
    response.end(
      `data: ${JSON.stringify({ model: tag, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n`,
    );
  });
  context.after(() => upstream.close());
  return upstream;
}

/** Returns the text of a stream that came to its end in the format of its client. */
function readWhole({ status, body }: Answer): string {
  assert.equal(status, 200, body);
  assert.match(body, /data: (?:\[DONE\]|\{"type":"message_stop"\})\n\n$/);
  return [...body.matchAll(/"(?:content|text)":"([^"]+)"/g)].map(([, text]) => text).join("");
}

function wholeOf(tag: string): string {
  return PIECES.map((piece) => `${tag}${piece};`).join("");
}

test("streams end whole while their models are edited under load, moved to other services and removed", async (t) => {
  const context = contextOf(t);
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const one = await startStreams(context, "one", nextTurn);
  const two = await startStreams(context, "two", nextTurn);
  const held = await startStreams(context, "held", () => released);
  const services = [service("one", one.port), service("two", two.port)];
  const models = (to: string): string[] => [model("a", { to }), virtualOf("a")];
  const gateway = await startGateway(
    context,
    documents(MODEL_GATEWAY, ...services, service("held", held.port), ...models("held")),
  );
  const chat = (name: string, path: string): Promise<Answer> =>
    call(gateway.url() + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: name, stream: true, max_tokens: 9, messages: [{ role: "user", content: "hi" }] }),
    });
  const everyChat = <T>(run: (name: string, path: string) => Promise<T>): Promise<T>[] =>
    ["a", "auto"].flatMap((name) => PATHS.map((path) => run(name, path)));

  let ended = 0;
  const open = everyChat((name, path) => chat(name, path).finally(() => ended++));
  while (held.requests.length < open.length) {
    assert.equal(ended, 0);
    await nextTurn();
  }

  await gateway.change(documents(MODEL_GATEWAY, ...services, ...models("one")));
  const seen = new Set<string>();
  let isEditing = true;
  const clients = everyChat(async (name, path) => {
    while (isEditing) seen.add(readWhole(await chat(name, path)));
  });
  for (let edit = 0; edit < 12; edit++) {
    const to = edit % 2 === 0 ? "two" : "one";
    const served = to === "two" ? two : one;
    const before = served.requests.length;
    await gateway.change(documents(MODEL_GATEWAY, ...services, ...models(to), model(`new-${edit}`)));
    // Each edit is in force for some of the chats; a client whose chat fails ends the wait.
    while (served.requests.length === before) await Promise.race([nextTurn(), ...clients]);
  }
  isEditing = false;
  await Promise.all(clients);
  assert.deepEqual([...seen].sort(), [wholeOf("one"), wholeOf("two")]);

  await gateway.change(documents(MODEL_GATEWAY, ...services, model("other")));
  assert.equal(await readRefusal(chat("a", "/v1/chat/completions")), "404 model_not_found");
  assert.equal(ended, 0, "the streams that were open before the edits are open still");
  release();
  assert.deepEqual(
    (await Promise.all(open)).map(readWhole),
    open.map(() => wholeOf("held")),
  );
});
