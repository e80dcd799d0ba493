/** The answer of `/explain` (docs/reference/admin.md), and the words in which the page shows it. */

export interface PolicySource {
  readonly level: string;
  /** Object and field, such as "GwPolicy default/p spec.traffic.cors". */
  readonly origin: string;
}

export interface LostPolicy extends PolicySource {
  readonly to: PolicySource;
  readonly reason: string;
}

export interface ExplainedPolicy {
  readonly policy: string;
  readonly part?: string;
  /** Unset for settings of backends. */
  readonly preRouting?: boolean;
  readonly from: readonly PolicySource[];
  readonly lost: readonly LostPolicy[];
}

export interface ExplainedRule {
  readonly rule: string;
  /** The backend that these policies are for, and the backend of the rule in front of it. */
  readonly backend?: string;
  readonly behind?: string;
  readonly provider?: string;
  readonly refuses?: string;
  readonly policies: readonly ExplainedPolicy[];
  readonly backends?: readonly ExplainedCalls[];
  readonly mirrors?: readonly ExplainedMirror[];
}

/** Calls to a backend, or to a provider or target of it. */
interface ExplainedCalls {
  readonly backend: string;
  readonly refuses?: string;
  readonly policies: readonly ExplainedPolicy[];
  readonly sections?: readonly ExplainedSection[];
}

interface ExplainedSection {
  readonly section: string;
  readonly refuses?: string;
  readonly policies: readonly ExplainedPolicy[];
}

/** Calls with copies of requests. */
interface ExplainedMirror extends ExplainedCalls {
  readonly share: number;
  readonly of?: string;
}

/** Settings under a title. */
export interface TitledSettings {
  readonly title: string;
  readonly refuses?: string;
  readonly policies: readonly ExplainedPolicy[];
}

/** Returns the settings of the calls that a rule makes, each with what it is for; nothing for those without any. */
export function settingsOfCalls({
  backends = [],
  mirrors = [],
}: Pick<ExplainedRule, "backends" | "mirrors">): TitledSettings[] {
  const titled = [
    ...backends.flatMap((calls) =>
      withSections(`Calls to ${calls.backend === "" ? "no backend" : calls.backend}`, calls),
    ),
    ...mirrors.flatMap((calls) => {
      const whose = calls.of === undefined ? "" : ` of requests to ${calls.of}`;
      return withSections(`Copies${whose} to ${calls.backend}, ${Number((calls.share * 100).toFixed(2))} %`, calls);
    }),
  ];
  return titled.filter(({ refuses, policies }) => refuses !== undefined || policies.length > 0);
}

function withSections(title: string, { backend, sections = [], ...calls }: ExplainedCalls): TitledSettings[] {
  return [
    { title, ...calls },
    ...sections.map((each) => ({ title: `Calls to ${each.section} of ${backend}`, ...each })),
  ];
}

export interface ExplainedRoute {
  readonly route: string;
  readonly listener: string;
  readonly rules: readonly ExplainedRule[];
}

/** How a port of a Gateway takes connections, as `/explain?gateway=` says it. */
export interface ExplainedPort {
  readonly port: number;
  readonly refuses?: string;
  readonly frontend: readonly ExplainedPolicy[];
}

const LEVELS: Readonly<Record<string, string | undefined>> = {
  gateway: "on the Gateway",
  port: "on the port",
  listener: "on the listener",
  backend: "on the backend",
  section: "on the provider or target",
  behind: "on the backend behind the provider",
  route: "on the route",
  rule: "on the rule",
  filters: "",
  own: "in the object itself",
};

/** Returns where a policy is attached, in words. */
export function levelText(level: string): string {
  return LEVELS[level] ?? level;
}

/** Returns the name of a source: the object with its field, or the route for a field of its own. */
export function sourceText({ level, origin }: PolicySource): string {
  return level === "filters" ? "the rule's own field" : origin;
}

/** Says why a policy lost, and to which one. */
export function lossText({ to, reason }: LostPolicy): string {
  const winner = sourceText(to);
  if (reason === "older") return `lost to ${winner}, which is older`;
  if (reason === "moreSpecific") {
    const where = to.level === "filters" ? "" : `${levelText(to.level)} and so `;
    return `lost to ${winner}, which is ${where}more specific`;
  }
  if (reason === "override") return `lost to ${winner}, which overrides more specific ones`;
  return `lost to ${winner} (${reason})`;
}
