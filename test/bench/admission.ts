/**
 * What admission costs: 10,000 objects from every corner of the schemas through the validator, and reviews over HTTPS as
 * an API server sends them, one after the other, for those objects and for the largest that etcd would take.
 */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import { text } from "node:stream/consumers";
import { applyDefaults } from "../../generated/defaults.ts";
import { renew } from "../../src/admission/certificates.ts";
import { startWebhookServer } from "../../src/admission/server.ts";
import { validate } from "../../src/admission/validate.ts";
import { candidatesOf } from "../support/objects/candidates.ts";
import { KINDS } from "../support/objects/kinds.ts";
import { recordingLog } from "../support/silent-log.ts";
import { figure, median, percentile, printTable } from "./report.ts";

const OBJECTS = 10_000;
/** Different ones of each kind; they are validated in turn. */
const DISTINCT = 200;
const REVIEWS = 2_000;
const LARGE_REVIEWS = 20;
const HOST = "127.0.0.1";

/** What etcd takes of one object, less its metadata and the envelope of a request. */
const LARGEST_BYTES = 1_500_000;
const EXPRESSION_CHARACTERS = 16_384;

interface Subject {
  readonly name: string;
  readonly bodies: readonly string[];
  readonly reviews: number;
}

/** @returns a table, ready to be printed */
export async function admissionTable(): Promise<string> {
  const objects = KINDS.flatMap((kind) => [...candidatesOf(kind, DISTINCT, 1)].map(({ object }) => ({ kind, object })));
  const whole = objects.map(({ kind, object }) => applyDefaults(kind.groupKind, object));
  const validated = validateAll(whole);
  const subjects: Subject[] = [
    { name: "review, generated objects", bodies: whole.map(reviewOf), reviews: REVIEWS },
    { name: "review, largest: long texts", bodies: [reviewOf(largest(longText))], reviews: LARGE_REVIEWS },
    { name: "review, largest: long expressions", bodies: [reviewOf(largest(longExpression))], reviews: LARGE_REVIEWS },
  ];
  const rows = [
    ["10,000 objects validated", figure(validated), "", "", ""],
    ...(await reviewAll(subjects)).map(({ name, times }) => [
      name,
      figure(times.reduce((sum, one) => sum + one, 0)),
      figure(median(times)),
      figure(percentile(times, 0.99)),
      figure(Math.max(...times)),
    ]),
  ];
  return printTable(["admission, ms", "all", "median", "p99", "worst"], rows);
}

function validateAll(objects: readonly object[]): number {
  // The rules are compiled when they are first needed: once per process, not once per object.
  for (const object of objects) validate(object);
  const start = performance.now();
  for (let at = 0; at < OBJECTS; at++) validate(objects[at % objects.length]);
  return performance.now() - start;
}

async function reviewAll(subjects: readonly Subject[]): Promise<{ name: string; times: number[] }[]> {
  const pem = renew(undefined, [HOST], Date.now());
  const { log } = recordingLog();
  const server = await startWebhookServer({ host: HOST, port: 0, certificate: pem.leaf, validate, log });
  const agent = new Agent({ keepAlive: true, ca: pem.authority.certificate });
  const url = `https://${HOST}:${server.address.port}/validate`;
  try {
    const measured: { name: string; times: number[] }[] = [];
    for (const { name, bodies, reviews } of subjects) {
      const times: number[] = [];
      for (let at = 0; at < reviews; at++) {
        const start = performance.now();
        await ask(url, agent, bodies[at % bodies.length] ?? "");
        times.push(performance.now() - start);
      }
      measured.push({ name, times });
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

/** A policy that is as large as etcd allows, most of it expressions of one form. */
function largest(form: (at: number) => string): object {
  const matchExpressions: string[] = [];
  for (let size = 0; size < LARGEST_BYTES; size += matchExpressions.at(-1)?.length ?? 0) {
    matchExpressions.push(form(matchExpressions.length));
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

/** As many calls and comparisons as an expression holds. */
function longExpression(at: number): string {
  const terms = [`request.path == "/${at}"`];
  const term = `request.headers["x-${at}"].startsWith("a")`;
  for (let length = terms[0]?.length ?? 0; ;) {
    length += term.length + " || ".length;
    if (length > EXPRESSION_CHARACTERS || terms.length >= MAX_TERMS) return terms.join(" || ");
    terms.push(term);
  }
}

/** Deeper than this an expression is refused for its depth. */
const MAX_TERMS = 200;
