/**
 * Measures admission: validates 10,000 generated objects that cover all parts of the schemas, then sends reviews over
 * HTTPS as an API server does, one at a time, for those objects and for the largest that etcd accepts. The client runs
 * on the same thread, so the processor time includes it. admission.ts starts this program.
 */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import { text } from "node:stream/consumers";
import { applyDefaults } from "../../generated/defaults.ts";
import { answerReview } from "../../src/admission/answer.ts";
import { renew } from "../../src/admission/certificates.ts";
import { startWebhookServer } from "../../src/admission/server.ts";
import { validate } from "../../src/admission/validate.ts";
import { candidatesOf } from "../support/fixtures/objects/candidates.ts";
import { KINDS } from "../support/fixtures/objects/kinds.ts";
import { recordingLog } from "../support/gateway/silent-log.ts";
import { figure, median, percentile, printTable } from "./report.ts";

const OBJECTS = 10_000;
/** Distinct objects of each kind; they are validated in turn. */
const DISTINCT = 200;
const REVIEWS = 2_000;
const LARGE_REVIEWS = 100;
/** Unmeasured reviews, during which V8 optimises the hot code. */
const WARM_REVIEWS = 5;
const HOST = "127.0.0.1";

/** The limit of etcd for one object, less its metadata and the envelope of a request. */
const LARGEST_BYTES = 1_500_000;
const EXPRESSION_CHARACTERS = 16_384;

interface Subject {
  readonly name: string;
  readonly body: (at: number) => string;
  readonly reviews: number;
}

interface Reviewed {
  readonly name: string;
  readonly times: readonly number[];
  readonly processor: number;
}

interface Spent {
  readonly elapsed: number;
  readonly processor: number;
}

async function admissionTable(): Promise<string> {
  const objects = KINDS.flatMap((kind) => [...candidatesOf(kind, DISTINCT, 1)].map(({ object }) => ({ kind, object })));
  const whole = objects.map(({ kind, object }) => applyDefaults(kind.groupKind, object));
  const validated = validateAll(whole);
  const bodies = whole.map(reviewOf);
  const subjects: Subject[] = [
    { name: "review, generated objects", body: (at) => bodies[at % bodies.length] ?? "", reviews: REVIEWS },
    ...large("long texts", longText),
    ...large("long expressions", longExpression),
  ];
  const rows = [
    ["10,000 objects validated", figure(validated.elapsed), "", "", `${figure(validated.processor)} for all`],
  ];
  for (const { name, times, processor } of await reviewAll(subjects)) {
    rows.push([name, "", figure(median(times)), figure(percentile(times, 0.99)), figure(processor / times.length)]);
  }
  return printTable(["admission, ms", "all", "median", "p99", "CPU of one"], rows);
}

/** Returns reviews of ever new objects, and of one object, as a repeated apply or a small update sends it. */
function large(what: string, form: (at: number) => string): Subject[] {
  const same = reviewOf(largest(form, 0));
  return [
    {
      name: `review, largest: new ${what}`,
      body: (at) => reviewOf(largest(form, (at + 1) * LARGEST_BYTES)),
      reviews: LARGE_REVIEWS,
    },
    { name: `review, largest: the same ${what}`, body: () => same, reviews: LARGE_REVIEWS },
  ];
}

function validateAll(objects: readonly object[]): Spent {
  // Warm up: rules are compiled on first use, once per process and not once per object.
  for (const object of objects) validate(object);
  const stop = startClocks();
  for (let at = 0; at < OBJECTS; at++) validate(objects[at % objects.length]);
  return stop();
}

/** @returns a function that returns the milliseconds spent since */
function startClocks(): () => Spent {
  const [start, before] = [performance.now(), process.threadCpuUsage()];
  return () => {
    const { user, system } = process.threadCpuUsage(before);
    return { elapsed: performance.now() - start, processor: (user + system) / 1_000 };
  };
}

async function reviewAll(subjects: readonly Subject[]): Promise<Reviewed[]> {
  const pem = renew(undefined, [HOST], Date.now());
  const { log } = recordingLog();
  const server = await startWebhookServer({
    host: HOST,
    port: 0,
    certificate: pem.leaf,
    review: async (body) => answerReview(body, validate),
    log,
  });
  const agent = new Agent({ keepAlive: true, ca: pem.authority.certificate });
  const url = `https://${HOST}:${server.address.port}/validate`;
  try {
    const measured: Reviewed[] = [];
    for (const { name, body, reviews } of subjects) {
      const times: number[] = [];
      let processor = 0;
      for (let at = -WARM_REVIEWS; at < reviews; at++) {
        const text = body(at < 0 ? reviews - at : at);
        const stop = startClocks();
        await ask(url, agent, text);
        const spent = stop();
        if (at < 0) continue;
        times.push(spent.elapsed);
        // The kernel counts in ticks, so only the sum is meaningful.
        processor += spent.processor;
      }
      measured.push({ name, times, processor });
    }
    return measured;
  } finally {
    agent.destroy();
    await server.stop();
  }
}

async function ask(url: string, agent: Agent, body: string): Promise<void> {
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  const asked = request(url, { agent, method: "POST", headers });
  asked.end(body);
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  const said = await text(answer);
  if (answer.statusCode !== 200) throw new Error(`the webhook answered ${answer.statusCode}: ${said}`);
}

function reviewOf(object: object): string {
  const kind = { group: "gwproxy.dev", version: "v1alpha1", kind: "GwPolicy" };
  return JSON.stringify({
    kind: "AdmissionReview",
    apiVersion: "admission.k8s.io/v1",
    request: { uid: "705ab4f5-6393-11e8-b7cc-42010a800002", kind, operation: "CREATE", object, oldObject: null },
  });
}

/** Returns a policy of the largest size, most of it expressions of one form. @param from makes their texts unique */
function largest(form: (at: number) => string, from: number): object {
  const matchExpressions: string[] = [];
  for (let size = 0; size < LARGEST_BYTES; size += matchExpressions.at(-1)?.length ?? 0) {
    matchExpressions.push(form(from + matchExpressions.length));
  }
  return applyDefaults("gwproxy.dev/GwPolicy", {
    apiVersion: "gwproxy.dev/v1alpha1",
    kind: "GwPolicy",
    metadata: { name: "largest", namespace: "default" },
    spec: {
      targetRefs: [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "gateway" }],
      traffic: { authorization: { policy: { matchExpressions } } },
    },
  });
}

function longText(at: number): string {
  const head = `request.path == "${at}`;
  return `${head.padEnd(EXPRESSION_CHARACTERS - 1, "x")}"`;
}

/** Returns an expression with as many calls and comparisons as the limits allow. */
function longExpression(at: number): string {
  const terms = [`request.path == "/${at}"`];
  const term = `request.headers["x-${at}"].startsWith("a")`;
  for (let length = terms[0]?.length ?? 0; ;) {
    length += term.length + " || ".length;
    if (length > EXPRESSION_CHARACTERS || terms.length >= MAX_TERMS) return terms.join(" || ");
    terms.push(term);
  }
}

/** An expression with more terms is refused for its depth. */
const MAX_TERMS = 200;

process.stdout.write(await admissionTable());
