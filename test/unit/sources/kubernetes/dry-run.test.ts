/** What an API server says to a dry run, in all its forms, becomes faults with paths; what is no verdict is an error. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { createDryRun, type ServerViolation } from "../../../../src/sources/kubernetes/dry-run.ts";
import { startScriptedApi } from "../../../support/servers/scripted-api.ts";

const OBJECT = { apiVersion: "example.dev/v1", kind: "Thing", metadata: { name: "t", namespace: "default" } };
const RESOURCES = {
  resources: [
    { name: "things", kind: "Thing", namespaced: true },
    { name: "things/status", kind: "Thing", namespaced: true },
  ],
};

interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly warnings?: readonly string[];
}

/** @param answers by "METHOD query-of-fieldValidation", such as "POST Strict"; discovery is answered by itself */
async function check(
  t: TestContext,
  answers: Readonly<Record<string, Answer>>,
): Promise<{ readonly faults: ServerViolation[]; readonly asked: readonly string[] }> {
  const api = await startScriptedApi();
  t.after(() => api.stop());
  const asked: string[] = [];
  let isDone = false;
  const serve = async (): Promise<void> => {
    while (!isDone) {
      const { method, path, query, reply } = await api.next();
      if (path === "/apis/example.dev/v1") {
        reply(RESOURCES);
        continue;
      }
      const key = `${method} ${query.get("fieldValidation") ?? "-"}`;
      asked.push(`${key} ${path}`);
      const { status: code, body, warnings } = answers[key] ?? { status: 500, body: {} };
      reply(body, code, warnings === undefined ? {} : { warning: warnings });
    }
  };
  // Ends with the test: the last turn waits for a request that never comes.
  void serve();
  try {
    return { faults: await createDryRun(api.client).check(OBJECT), asked };
  } finally {
    isDone = true;
  }
}

function status(code: number, reason: string, message: string, causes: readonly object[] = []): Answer {
  return { status: code, body: { kind: "Status", code, reason, message, details: { causes } } };
}

function brief(faults: readonly ServerViolation[]): string[] {
  return faults.map(({ severity, path, message }) => `${severity} ${path}: ${message}`);
}

test("an object that is taken has no faults, and the warnings beside the answer are kept", async (t) => {
  const warnings = ['299 - "spec.a: \\"x\\" is old"', '299 - "second"'];
  const { faults, asked } = await check(t, { "POST Strict": { status: 201, body: OBJECT, warnings } });
  assert.deepEqual(brief(faults), ['warning : spec.a: "x" is old', "warning : second"]);
  assert.deepEqual(asked, ["POST Strict /apis/example.dev/v1/namespaces/default/things"]);
});

test("each cause of a refusal is a fault at its field, without the ones that only follow from others", async (t) => {
  const causes = [
    { reason: "FieldValueInvalid", field: "spec.a", message: "Invalid value: 1" },
    { reason: "FieldValueInvalid", field: "<nil>", message: "some validation rules were not checked because …" },
  ];
  const { faults } = await check(t, { "POST Strict": status(422, "Invalid", "Thing is invalid", causes) });
  assert.deepEqual(brief(faults), ["error spec.a: Invalid value: 1"]);
});

test("a webhook's denial keeps the causes that it gives, and is one fault without any", async (t) => {
  const causes = [{ reason: "FieldValueInvalid", field: "spec.cel", message: "does not compile" }];
  const words = 'admission webhook "w" denied the request: no';
  const withCauses = await check(t, { "POST Strict": status(422, "Invalid", words, causes) });
  assert.deepEqual(brief(withCauses.faults), ["error spec.cel: does not compile"]);
  const without = await check(t, { "POST Strict": status(403, "Forbidden", words) });
  assert.deepEqual(brief(without.faults), [`error : ${words}`]);
});

test("unknown fields stop the server, so that it is asked again without them", async (t) => {
  const { faults, asked } = await check(t, {
    "POST Strict": status(400, "BadRequest", 'strict decoding error: unknown field "spec.b", unknown field "spec.c"'),
    "POST Ignore": status(422, "Invalid", "no", [
      { reason: "FieldValueRequired", field: "spec.d", message: "Required value" },
    ]),
  });
  assert.deepEqual(brief(faults), [
    'error spec.b: unknown field "spec.b"',
    'error spec.c: unknown field "spec.c"',
    "error spec.d: Required value",
  ]);
  assert.equal(asked.length, 2);
});

test("an object that exists is judged as a change of what is there", async (t) => {
  const { faults, asked } = await check(t, {
    "POST Strict": status(409, "AlreadyExists", "things exists"),
    "GET -": { status: 200, body: { ...OBJECT, metadata: { ...OBJECT.metadata, resourceVersion: "7" } } },
    "PUT Strict": status(422, "Invalid", "no", [
      { reason: "FieldValueInvalid", field: "spec.a", message: "may not change" },
    ]),
  });
  assert.deepEqual(brief(faults), ["error spec.a: may not change"]);
  assert.equal(asked.at(-1), "PUT Strict /apis/example.dev/v1/namespaces/default/things/t");
});

test("a server that fails, knows nobody or lets nobody ask has given no verdict", async (t) => {
  await assert.rejects(check(t, { "POST Strict": status(500, "InternalError", "etcd is away") }), /etcd is away/);
  await assert.rejects(check(t, { "POST Strict": status(401, "Unauthorized", "who?") }), /who\?/);
  const words = 'things.example.dev is forbidden: User "u" cannot create resource "things" in API group "example.dev"';
  await assert.rejects(
    check(t, { "POST Strict": status(403, "Forbidden", words) }),
    /does not let us ask: things\.example\.dev/,
  );
});
