/** Compares requests and statuses with a step of `test/support/fixtures/delegation/trees.ts`. */
import { call } from "../clients/http.ts";
import { startUpstream } from "../servers/upstream.ts";

/** Starts the server that the trees' backends `echo` lead to. @returns its port */
export async function startTreeEcho(context: { after(close: () => unknown): void }): Promise<number> {
  const upstream = await startUpstream((request, response) =>
    response.end(`${request.url} ${request.headers["x-rule"] ?? "-"} ${request.headers["x-policy"] ?? "-"}`),
  );
  context.after(() => upstream.close());
  return upstream.port;
}

/** @param request such as "POST /path host=other.test x-team=a" */
export async function answerTo(url: string, request: string): Promise<string> {
  const words = request.split(" ");
  const method = words[0]?.startsWith("/") === true ? "GET" : (words.shift() ?? "GET");
  const [path = "/", ...fields] = words;
  const headers = Object.fromEntries(fields.map((field) => field.split("=", 2) as [string, string]));
  const { status, body } = await call(`${url}${path}`, { method, headers });
  return status === 200 ? body : String(status);
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

interface RouteStatusEntry {
  readonly parentRef: Readonly<Record<string, unknown>>;
  readonly conditions: readonly Condition[];
}

interface PolicyStatusEntry {
  readonly ancestorRef: Readonly<Record<string, unknown>>;
  readonly conditions: readonly Condition[];
}

/** Returns one line for each parent, such as "HTTPRoute a/parent Accepted not BackendNotFound", sorted. */
export function describeParents(entries: readonly RouteStatusEntry[]): string[] {
  return entries
    .map(({ parentRef, conditions }) => {
      const [accepted, resolved] = ["Accepted", "ResolvedRefs"].map((wanted) => {
        const found = conditions.find(({ type }) => type === wanted);
        return found?.status === "True" ? found.reason : `not ${found?.reason}`;
      });
      return `${parentRef["kind"]} ${parentRef["namespace"]}/${parentRef["name"]} ${accepted} ${resolved}`;
    })
    .sort();
}

/** Returns one line for each Gateway: "Gateway default/gw Attached", then the message of `Overridden` if it is. */
export function describePolicy(entries: readonly PolicyStatusEntry[]): string[] {
  return entries
    .map(({ ancestorRef, conditions }) => {
      const attached = conditions.find(({ type }) => type === "Attached");
      const overridden = conditions.filter(({ type, status }) => type === "Overridden" && status === "True");
      const place = `${ancestorRef["kind"]} ${ancestorRef["namespace"]}/${ancestorRef["name"]}`;
      const words = `${place} ${attached?.status === "True" ? attached.reason : `not ${attached?.reason}`}`;
      return [words, ...overridden.map(({ message }) => message)].join(", ");
    })
    .sort();
}
