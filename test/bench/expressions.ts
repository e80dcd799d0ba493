/**
 * Measures expressions: nanoseconds per evaluation of common forms, and the longest time for which expressions that are
 * built to be slow block the event loop before their budget ends them. The engine runs in this process.
 */
import { HeaderView } from "../../src/cel/header-view.ts";
import { compileExpression } from "../../src/cel/compile/compile-expression.ts";
import { REQUEST_ENVIRONMENT } from "../../src/cel/environments/index.ts";
import { CelError } from "../../src/cel/errors.ts";
import { AttributeMap } from "../../src/cel/values.ts";
import { HeaderList } from "../../src/lib/header-list.ts";
import { median, printTable } from "./report.ts";

const COMMON: readonly string[] = [
  "request.method == 'GET'",
  "request.method == 'GET' && request.path.startsWith('/api/')",
  "jwt.sub == 'alice' && 'admin' in jwt.groups",
  "jwt.groups.exists(g, g == 'admin')",
  "has(jwt.email)",
  "request.headers['x-tenant']",
  "default(request.headers['x-none'], 'anonymous')",
  "request.path.matches('^/api/v[0-9]+/users/[a-z]+$')",
  "cidr('10.0.0.0/8').containsIP(source.address)",
  "jwt.n * 2 + 1 > 10 ? 'large' : 'small'",
  "{'user': jwt.sub, 'path': request.path}",
  "jwt.temperature * 2.0",
];

const MEGABYTE = 1024 * 1024;

/** Expressions that do one kind of costly work each, until the budget ends them. */
const HOSTILE: readonly string[] = [
  "llmRequest.list.all(a, llmRequest.list.all(b, llmRequest.list.all(c, a + b + c >= 0)))",
  "llmRequest.list.map(a, llmRequest.list.map(b, [a, b]))",
  "llmRequest.list.all(a, llmRequest.list == llmRequest.list)",
  "llmRequest.list.all(a, toJson(llmRequest.list) != '')",
  "llmRequest.list.all(a, string(a).matches('(a+)+$') || true)",
  "llmRequest.text.matches('(a+)+$')",
  "llmRequest.text.matches('(a|aa)*b(a|aa)*c(a|aa)*d')",
  "llmRequest.text.matches('(.{1,30}){1,30}x')",
  "llmRequest.text.matches('[a-q][^u-z]{13}x')",
  "llmRequest.text.regexReplace('(a*)*(b*)*$', 'x')",
  "llmRequest.list.all(a, cidr('10.0.0.0/8').containsIP('10.0.0.' + string(a)) || true)",
  "llmRequest.list.all(a, timestamp('2024-01-01T00:00:00Z').getHours('Asia/Tokyo') >= 0)",
  "llmRequest.list.all(a, sha256.encode(llmRequest.text) != '')",
  "llmRequest.list.all(a, json(llmRequest.json) != null)",
  "llmRequest.list.all(a, llmRequest.text.split('') != [])",
  "llmRequest.list.all(a, llmRequest.text.replace('a', 'bb') != '')",
  "llmRequest.list.all(a, llmRequest.text + llmRequest.text == llmRequest.text + llmRequest.text)",
  "llmRequest.list.all(a, llmRequest.text < llmRequest.text + 'a')",
  "llmRequest.list.all(a, '%s'.format([llmRequest.list]) != '')",
  "llmRequest.list.all(a, a in llmRequest.list.map(x, x + 1))",
  "llmRequest.list.all(a, form.decode(llmRequest.form) != {})",
  "llmRequest.list.all(a, base64.decode(base64.encode(llmRequest.text)) != b'')",
  "llmRequest.list.map(a, llmRequest.list)",
  "llmRequest.list.map(a, llmRequest.list.map(b, string(a) + string(b))).map(l, l.join(',')).join(',')",
  "llmRequest.list.all(a, llmRequest.object.size() > 0)",
  "llmRequest.list.all(a, 'k1' in llmRequest.object && llmRequest.object == llmRequest.object)",
  "llmRequest.list.all(a, string(a) != '' && ('x' + string(a)).matches('[a-z]' + string(a)))",
  "llmRequest.random.matches('[a-q][^u-z]{100}$')",
  "llmRequest.random.matches('[ab]*a[ab]{13}$')",
  "llmRequest.wide.matches('(\\\\pL|\\\\pS)+[0-9]$')",
  "llmRequest.wide.charAt(3) + llmRequest.wide.substring(1, 4)",
  "llmRequest.text.regexReplace('(a|b)+(c)?$', '$1')",
  "llmRequest.spaces.trim() == 'x'",
  "llmRequest.list.all(a, request.headers['x-none' + string(a)] == '' || true)",
  "llmRequest.list.map(a, json('[[[[' + string(a) + ']]]]'))",
  "llmRequest.list.map(a, {a: a, a + 1: [a]})",
  "llmRequest.list.map(a, {string(a): a}).map(m, m.map(k, k))",
  "llmRequest.list.map(a, llmRequest.list.filter(b, b != a))",
  "llmRequest.deep == llmRequest.deep && toJson(llmRequest.deep) != ''",
  "[llmRequest.text, llmRequest.text, llmRequest.text, llmRequest.text].join('x').split('x').join('y')",
  "llmRequest.list.all(a, random() < 2.0 && uuid() != '')",
  "llmRequest.list.all(a, llmRequest.text.lowerAscii().upperAscii().trim() != 'x')",
];

class Attributes extends AttributeMap {
  readonly #values: ReadonlyMap<string, () => unknown>;

  constructor(values: ReadonlyMap<string, () => unknown>) {
    super();
    this.#values = values;
  }

  override get(name: string): unknown {
    return this.#values.get(name)?.();
  }

  override has(name: string): boolean {
    return this.#values.has(name);
  }

  override names(): string[] {
    return [...this.#values.keys()];
  }
}

const HEADERS = new HeaderList(["Host", "api.example.com", "X-Tenant", "blue", "Accept", "*/*", "User-Agent", "bench"]);

const ROOTS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  [
    "request",
    new Attributes(
      new Map<string, () => unknown>([
        ["method", () => "GET"],
        ["path", () => "/api/v1/users/alice"],
        ["headers", () => new HeaderView(HEADERS)],
      ]),
    ),
  ],
  ["jwt", { sub: "alice", email: "a@example.com", groups: ["dev", "ops", "admin"], n: 7, temperature: 0.7 }],
  ["source", { address: "10.1.2.3", port: 4711 }],
  [
    "llmRequest",
    {
      object: Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`k${at}`, at])),
      random: Array.from(
        { length: MEGABYTE },
        (_, at) => "abcdefghijklmnopqrst"[(at * 7919 + (at >> 3) * 31) % 20],
      ).join(""),
      wide: "é😀ß".repeat(MEGABYTE / 8),
      spaces: " ".repeat(MEGABYTE),
      deep: JSON.parse(`${"[".repeat(1000)}1${"]".repeat(1000)}`) as unknown,
      list: Array.from({ length: 10_000 }, (_, at) => at),
      text: "a".repeat(MEGABYTE),
      json: JSON.stringify(Array.from({ length: 20_000 }, (_, at) => ({ at, name: `n${at}` }))),
      form: Array.from({ length: 20_000 }, (_, at) => `k${at}=v`).join("&"),
    },
  ],
]);

const SCOPE = { root: (name: string): unknown => ROOTS.get(name) };
const BATCHES = 9;
const BATCH_MS = 20;

export function expressionTables(): string {
  const common = COMMON.map((source) => [source, nanoseconds(source).toFixed(0)]);
  const hostile = HOSTILE.map((source) => {
    const { ms, outcome } = worst(source);
    return [source, ms.toFixed(2), outcome];
  });
  return `${printTable(["expression", "ns"], common)}\n${printTable(["built to be slow", "longest ms", "ends with"], hostile)}`;
}

/** Returns the median of batches, because garbage collection and other processes disturb few of them. */
function nanoseconds(source: string): number {
  const expression = compileExpression(source, REQUEST_ENVIRONMENT);
  let times = 1;
  for (;;) {
    const took = batch(expression.evaluate, times);
    if (took >= BATCH_MS) break;
    times *= 2;
  }
  const figures = Array.from({ length: BATCHES }, () => (batch(expression.evaluate, times) * 1e6) / times);
  return median(figures) ?? 0;
}

/** Returns milliseconds of this thread's processor time, which does not depend on the load of the machine. */
function timeOf(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

function batch(evaluate: (scope: typeof SCOPE) => unknown, times: number): number {
  return timeOf(() => {
    for (let at = 0; at < times; at++) evaluate(SCOPE);
  });
}

/**
 * Returns the slowest of several evaluations. The first ones run code that V8 has not compiled yet, as in a gateway.
 */
function worst(source: string): { ms: number; outcome: string } {
  const expression = compileExpression(source, REQUEST_ENVIRONMENT);
  let ms = 0;
  let outcome = "";
  for (let round = 0; round < 5; round++) {
    const took = timeOf(() => {
      outcome = outcomeOf(() => expression.evaluate(SCOPE));
    });
    ms = Math.max(ms, took);
  }
  return { ms, outcome };
}

function outcomeOf(evaluate: () => unknown): string {
  try {
    const value = evaluate();
    return typeof value === "boolean" ? String(value) : "a value";
  } catch (error) {
    if (error instanceof CelError) return error.code;
    throw error;
  }
}
