/** Asks a real API server for its verdict on an object without storing it: a dry run over one kept connection. */
import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { text } from "node:stream/consumers";
import { parse } from "yaml";

export interface Fault {
  readonly path: string;
  readonly message: string;
}

export interface ServerVerdict {
  /**
   * Returns the errors of the server for a new object of one of our kinds, sorted; empty when it accepts the object.
   */
  faultsOf(plural: string, object: object): Promise<Fault[]>;
  close(): void;
}

/** Text of a cause that only follows from another one. Admission checks in the same order but does not report it. */
const FOLLOWS = "some validation rules were not checked";

interface Kubeconfig {
  readonly clusters: readonly [{ readonly cluster: Readonly<Record<string, string>> }];
  readonly users: readonly [{ readonly user: Readonly<Record<string, string>> }];
}

/** @param kubeconfig path of a file that the testbed wrote */
export function askServer(kubeconfig: string): ServerVerdict {
  // The testbed wrote the file in this form.
  const { clusters, users } = parse(readFileSync(kubeconfig, "utf8")) as Kubeconfig;
  const decode = (value: string | undefined): Buffer => Buffer.from(value ?? "", "base64");
  const { cluster } = clusters[0];
  const { user } = users[0];
  const agent = new Agent({
    keepAlive: true,
    maxSockets: 4,
    ca: decode(cluster["certificate-authority-data"]),
    cert: decode(user["client-certificate-data"]),
    key: decode(user["client-key-data"]),
  });
  const post = async (path: string, body: string): Promise<{ status: number; body: string }> => {
    const asked = request(`${cluster["server"]}${path}`, {
      agent,
      method: "POST",
      headers: { "content-type": "application/json" },
    });
    const answered = new Promise<{ status: number; body: string }>((resolve, reject) => {
      asked.on("error", reject);
      asked.on("response", (response) => {
        text(response).then((read) => resolve({ status: response.statusCode ?? 0, body: read }), reject);
      });
    });
    asked.end(body);
    return answered;
  };
  return {
    async faultsOf(plural, object) {
      const path = `/apis/gwproxy.dev/v1alpha1/namespaces/default/${plural}?dryRun=All&fieldValidation=Strict`;
      const { status, body } = await post(path, JSON.stringify(object));
      if (status === 201) return [];
      // The body is a metav1.Status; another shape fails below.
      const { details, message } = JSON.parse(body) as {
        readonly message: string;
        readonly details?: { readonly causes?: readonly { readonly field?: string; readonly message: string }[] };
      };
      if (status === 400) return unknownFields(message);
      if (status !== 422 || details?.causes === undefined) throw new Error(`${status}: ${message}`);
      return details.causes
        .filter((cause) => !cause.message.includes(FOLLOWS))
        .map((cause) => ({ path: cause.field ?? "", message: cause.message }))
        .sort(byText);
    },
    close: () => agent.destroy(),
  };
}

/** Splits the message of strict decoding into one error per field. */
function unknownFields(message: string): Fault[] {
  const fields = [...message.matchAll(/unknown field ("(?:[^"\\]|\\.)*")/g)];
  if (!message.includes("strict decoding error") || fields.length === 0) throw new Error(`400: ${message}`);
  // A quoted field name is valid JSON.
  return fields.map(([text, field = ""]) => ({ path: JSON.parse(field) as string, message: text })).sort(byText);
}

export function byText(a: Fault, b: Fault): number {
  const [left, right] = [`${a.path} ${a.message}`, `${b.path} ${b.message}`];
  return left < right ? -1 : left > right ? 1 : 0;
}
