import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "../../../src/api/object.ts";
import type { DesiredStatus } from "../../../src/status/desired.ts";
import { createStatusWriter, type StatusClient, type StatusWriter } from "../../../src/status/writer.ts";
import { recordingLog } from "../../support/gateway/silent-log.ts";

const ID = { group: "example.com", kind: "Route", namespace: "default", name: "x" };
const FOREIGN = { parentRef: { name: "theirs" }, controllerName: "other", conditions: [] };

function desired(status: "True" | "False"): DesiredStatus {
  const condition = { type: "Accepted", status, reason: "Reason", message: "", observedGeneration: 1 };
  const entries = [{ ref: { name: "gw" }, conditions: [condition] }];
  return { id: ID, form: "listed", list: "parents", controllerName: "us", entries };
}

/** One object that behaves as the API server says: a write on an old version is a conflict. */
class OneObject implements StatusClient {
  version = 1;
  parents: readonly unknown[] = [];
  readonly calls: string[] = [];
  /** What a cache would answer that lags behind. */
  cached: KubeObject | undefined;
  /** Runs before each write; for changes and failures in between. */
  beforeWrite: () => void = () => undefined;

  get object(): KubeObject {
    const metadata = { name: ID.name, namespace: ID.namespace, resourceVersion: String(this.version) };
    return { apiVersion: "example.com/v1", kind: ID.kind, metadata, status: { parents: this.parents } } as KubeObject; // status is read as data
  }

  change(parents: readonly unknown[]): void {
    this.parents = parents;
    this.version++;
  }

  read(_: unknown, isFresh: boolean): Promise<KubeObject | undefined> {
    this.calls.push(isFresh ? "read fresh" : "read");
    return Promise.resolve(isFresh ? this.object : (this.cached ?? this.object));
  }

  apply(): Promise<"written"> {
    throw new Error("a list is never applied");
  }

  async replace(
    _: unknown,
    version: string,
    status: Readonly<Record<string, unknown>>,
  ): Promise<"written" | "conflict"> {
    this.beforeWrite();
    const outcome = version === String(this.version) ? "written" : "conflict";
    this.calls.push(outcome);
    if (outcome === "written") this.change(status["parents"] as unknown[]); // built by the writer as a list
    return outcome;
  }
}

function start(client: StatusClient): { writer: StatusWriter; lines: string[] } {
  const { log, lines } = recordingLog();
  return { writer: createStatusWriter({ client, log, retryMs: { initial: 1, max: 2 } }), lines };
}

test("one change is one read and one write, and the same again is no write", async () => {
  const client = new OneObject();
  const { writer } = start(client);
  writer.put(desired("True"));
  await writer.idle();
  writer.put(desired("True"));
  await writer.idle();
  assert.deepEqual(client.calls, ["read", "written", "read"]);
});

test("a cache that lags behind costs one conflict and then the server is asked", async () => {
  const client = new OneObject();
  client.cached = client.object;
  client.change([FOREIGN]);
  const { writer } = start(client);
  writer.put(desired("True"));
  await writer.idle();
  assert.deepEqual(client.calls, ["read", "conflict", "read fresh", "written"]);
  assert.deepEqual(client.parents[0], FOREIGN);
  assert.equal(client.parents.length, 2);
});

test("an object that changes under every attempt is left to a later one", async () => {
  const client = new OneObject();
  let changes = 0;
  client.beforeWrite = () => {
    if (changes++ < 7) client.change([FOREIGN]);
  };
  const { writer, lines } = start(client);
  writer.put(desired("True"));
  await writer.idle();
  assert.equal(client.calls.filter((call) => call === "conflict").length, 7);
  assert.equal(client.calls.at(-1), "written");
  assert.equal(lines.filter((line) => line.includes("changed under every attempt")).length, 1);
});

test("a failing server is tried again and named in the log", async () => {
  const client = new OneObject();
  let failures = 0;
  client.beforeWrite = () => {
    if (failures++ < 2) throw new Error("connection refused");
  };
  const { writer, lines } = start(client);
  writer.put(desired("True"));
  await writer.idle();
  assert.equal(client.calls.at(-1), "written");
  assert.equal(lines.filter((line) => line.includes("example.com/Route/default/x")).length, 2);
});

test("sight of our own write leads to nothing, sight of a loss leads to a repair", async () => {
  const client = new OneObject();
  const { writer } = start(client);
  writer.put(desired("True"));
  await writer.idle();
  client.calls.length = 0;
  writer.observe(client.object);
  await writer.idle();
  assert.deepEqual(client.calls, []);

  client.change([FOREIGN]);
  writer.observe(client.object);
  await writer.idle();
  assert.deepEqual(client.calls, ["read", "written"]);
  assert.equal(client.parents.length, 2);
});

test("an object nobody asked about, or that is forgotten, is left alone", async () => {
  const client = new OneObject();
  const { writer } = start(client);
  writer.observe(client.object);
  writer.put(desired("True"));
  await writer.idle();
  writer.forget(ID);
  client.change([]);
  client.calls.length = 0;
  writer.observe(client.object);
  await writer.idle();
  assert.deepEqual(client.calls, []);
});
