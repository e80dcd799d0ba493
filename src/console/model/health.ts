/** Judges from the data of the console whether a data plane is well, and says what to do where it is not. */
import type { ConfigurationContent, ConsoleData } from "../data.ts";

export type HealthState = "well" | "degraded" | "starting" | "disconnected";

interface Finding {
  readonly text: string;
  /** What the reader can do about it. */
  readonly next: string;
}

export interface Health {
  readonly state: HealthState;
  readonly findings: readonly Finding[];
}

/** How many routes with a problem are named one by one. */
const NAMED_ROUTES = 5;

/** @param content undefined while it has not been fetched */
export function assessHealth(data: ConsoleData, content: ConfigurationContent | undefined): Health {
  const findings = [
    ...findPending(data),
    ...findSourceProblems(data),
    ...findRefusals(data),
    ...(content === undefined ? [] : [...findClosedPorts(content), ...findBrokenRoutes(content)]),
    ...findEjections(data),
  ];
  if (data.process.pending.includes("configuration")) return { state: "starting", findings };
  return { state: findings.length === 0 ? "well" : "degraded", findings };
}

function findPending({ process: { pending, source } }: ConsoleData): Finding[] {
  return pending.map((step) => {
    if (step === "shutdown")
      return { text: "The process is shutting down.", next: "Requests in flight are finished; new ones go elsewhere." };
    if (step !== "configuration") return { text: `Readiness waits for ${step}.`, next: "See the log of the process." };
    const next =
      source === "files"
        ? "See what `gwproxy up` prints about the manifests."
        : "Check that the controller runs and that this data plane may connect to it.";
    return { text: "No configuration has arrived yet.", next };
  });
}

function findSourceProblems({ process: { pending, source, following } }: ConsoleData): Finding[] {
  if (following || source === "files" || pending.includes("configuration")) return [];
  return [
    {
      text: "The controller is not connected; the last configuration serves.",
      next: "Check the pods of the controller and their log.",
    },
  ];
}

function findRefusals({ refused }: ConsoleData): Finding[] {
  return refused.slice(0, NAMED_ROUTES).map(({ type, key, reason }) => ({
    text: `${type} ${key} was refused: ${reason}`,
    next: "Its last accepted version serves. Correct the object; its status says the same.",
  }));
}

function findClosedPorts({ binds }: ConfigurationContent): Finding[] {
  return binds
    .filter(({ openPort, isInternal }) => openPort === null && !isInternal)
    .map(({ port, gateway }) => ({
      text: `Port ${port} of Gateway ${gateway} is not open.`,
      next: "Free the port, or change it in the listener.",
    }));
}

function findBrokenRoutes({ routes }: ConfigurationContent): Finding[] {
  const broken = routes.filter(({ rules }) => rules.some(({ problems }) => problems.length > 0));
  const named = broken.slice(0, NAMED_ROUTES).map(({ kind, name, rules }) => ({
    text: `${kind} ${name} answers some requests with an error: ${rules.flatMap(({ problems }) => problems)[0] ?? ""}`,
    next: "Correct the reference that the message names.",
  }));
  if (broken.length <= NAMED_ROUTES) return named;
  return [...named, { text: `${broken.length - NAMED_ROUTES} more routes have such a problem.`, next: "See Routes." }];
}

function findEjections({ backends: { ejected } }: ConsoleData): Finding[] {
  if (ejected === 0) return [];
  const text = ejected === 1 ? "One endpoint is out of rotation." : `${ejected} endpoints are out of rotation.`;
  return [{ text, next: "See Backends for the failures and the time of return." }];
}
