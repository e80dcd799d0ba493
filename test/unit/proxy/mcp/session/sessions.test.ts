import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  decodeRecord,
  digestBackend,
  digestSubject,
  digestTarget,
  encodeRecord,
} from "../../../../../src/proxy/mcp/session/record.ts";
import { parseSessionKeys, sealOf } from "../../../../../src/proxy/mcp/session/session-keys.ts";
import { Sessions } from "../../../../../src/proxy/mcp/session/sessions.ts";
import { allocateRecords, SharedRecords } from "../../../../../src/proxy/mcp/session/shared-records.ts";
import { allocateShared, openShared } from "../../../../../src/proxy/shared-state.ts";
import { assertProperty } from "../../../../support/fixtures/seed.ts";

const CLIENT = { version: "2025-11-25", capabilities: "{}", name: "client", clientVersion: "1" };
const OWNER = { backend: "backend/default/tools", subject: undefined };
const KEY = "ab".repeat(32);

function createSessions(nowMs: () => number = Date.now): Sessions {
  return new Sessions(sealOf([KEY]), openShared(allocateShared(1), 0).sessions, nowMs);
}

/** Opens a session whose target issued this id. */
function beginSession(sessions: Sessions, id: string, name = CLIENT.name): string {
  const begun = sessions.begin({ ...CLIENT, name }, OWNER);
  Object.assign(begun.target("one"), { entered: true, id });
  return sessions.register(begun, "2025-06-18").id ?? "";
}

test("a record is read as it was written", () => {
  const target = fc.record({
    id: fc.option(fc.string({ minLength: 1 }), { nil: undefined }),
    endpoint: fc.constantFrom("10.0.0.1:80", undefined),
  });
  const targets = fc.array(fc.tuple(fc.string(), target), { maxLength: 5 });
  const texts = fc.record({
    version: fc.string(),
    capabilities: fc.json(),
    name: fc.string(),
    clientVersion: fc.string(),
  });
  assertProperty(
    fc.property(
      texts,
      fc.option(fc.string(), { nil: undefined }),
      fc.nat(),
      targets,
      (client, subject, createdAtS, list) => {
        const record = {
          client: { ...client },
          subject: subject === undefined ? undefined : digestSubject(subject),
          backend: digestBackend("b"),
          createdAtS,
          targets: new Map(list.map(([name, { id, endpoint }]) => [digestTarget(name), { id, endpoint }])),
        };
        assert.deepEqual(decodeRecord(encodeRecord(record)), record);
      },
    ),
  );
});

test("any replica with the key opens a session, with the version that was negotiated", () => {
  const id = beginSession(createSessions(), "upstream-id");
  const session = createSessions().resume(id, OWNER);
  assert.equal(session?.client.version, "2025-06-18");
  assert.deepEqual(session?.target("one"), {
    entered: true,
    isLost: false,
    id: "upstream-id",
    endpoint: undefined,
    entering: undefined,
  });
  assert.equal(session?.target("two").entered, false);
});

test("a session is unknown to another backend, to another user, and after a day", () => {
  let nowMs = 1_000_000_000;
  const sessions = createSessions(() => nowMs);
  const id = beginSession(sessions, "a");
  assert.equal(sessions.resume(id, { ...OWNER, backend: "backend/default/other" }), undefined);
  assert.equal(sessions.resume(id, { ...OWNER, subject: digestSubject("eve") }), undefined);
  assert.equal(sessions.resume(`${id.slice(0, -2)}AA`, OWNER), undefined);
  nowMs += 24 * 3_600_000 - 1;
  assert.notEqual(sessions.resume(id, OWNER), undefined);
  nowMs += 1_001;
  assert.equal(sessions.resume(id, OWNER), undefined);
});

test("names of clients are cut between characters, and a session that is too large is refused", () => {
  const sessions = createSessions();
  const id = beginSession(sessions, "a", "\u00e4".repeat(100));
  assert.equal(createSessions().resume(id, OWNER)?.client.name, "\u00e4".repeat(64));
  const odd = beginSession(sessions, "a", `x${"\u00e4".repeat(100)}`);
  assert.equal(createSessions().resume(odd, OWNER)?.client.name, `x${"\u00e4".repeat(63)}`);
  assert.throws(() => beginSession(sessions, "a".repeat(5_000)), { status: 503 });
});

test("a thousand sessions more than are kept cost no memory of their own", () => {
  const sessions = createSessions();
  const ids = Array.from({ length: 9_200 }, (_, at) => beginSession(sessions, String(at)));
  assert.equal(sessions.keptCount, 8_192);
  assert.equal(sessions.resume(ids[0] ?? "", OWNER)?.target("one").id, "0");
});

test("records are seen by all threads, and the oldest of a neighbourhood makes room", () => {
  const buffer = allocateRecords(8, 16);
  const [one, other] = [new SharedRecords(buffer), new SharedRecords(buffer)];
  const digest = (at: number): string => at.toString(16).padStart(32, "0");
  for (let at = 0; at < 9; at++) assert.equal(one.put(digest(at), Buffer.from(`value ${at}`), at + 1), true);
  assert.equal(other.get(digest(0), 0), undefined);
  assert.equal(other.get(digest(8), 0)?.toString(), "value 8");
  assert.equal(other.get(digest(3), 5), undefined);
  assert.equal(one.put(digest(3), Buffer.alloc(17), 10), false);
  assert.equal(other.put(digest(3), Buffer.from("new"), 10), true);
  assert.equal(one.get(digest(3), 5)?.toString(), "new");
});

test("the place of a thread that died while it wrote can be written again", () => {
  const buffer = allocateRecords(8, 16);
  const digest = "0".repeat(31) + "1";
  const [one, other] = [new SharedRecords(buffer, 1), new SharedRecords(buffer, 2)];
  for (let at = 0; at < 8; at++) one.put(`${at}${"0".repeat(30)}9`, Buffer.from("a"), 1);
  // The thread 1 has taken every place and got no further.
  const ints = new Int32Array(buffer);
  const placeInts = (buffer.byteLength - 16) / 8 / 4;
  for (let at = 0; at < 8; at++) ints[4 + at * placeInts] = -2;
  assert.equal(other.put(digest, Buffer.from("b"), 2), false);
  other.forget(2);
  assert.equal(other.put(digest, Buffer.from("b"), 2), false);
  other.forget(1);
  assert.equal(other.put(digest, Buffer.from("b"), 2), true);
  assert.equal(new SharedRecords(buffer, 3).get(digest, 0)?.toString(), "b");
});

test("keys are lists of 64 hexadecimal digits, and a fault does not show them", () => {
  assert.deepEqual(parseSessionKeys(`${KEY}, ${KEY}`), [KEY, KEY]);
  assert.throws(
    () => parseSessionKeys(`${KEY},secret`),
    (error: Error) => !error.message.includes("secret"),
  );
});
