/** Finds the phases in which a guardrail sees a method, by the most exact of its patterns. */
import { McpGuardrailPhase } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";

export interface Phases {
  readonly request: boolean;
  readonly response: boolean;
}

interface Pattern {
  readonly text: string;
  readonly phase: McpGuardrailPhase;
  matches(method: string): boolean;
  /** The smaller one counts: exact names before prefixes, suffixes and "*". */
  readonly rank: number;
}

/** @param methods phases by method, "prefix/*", "*\/suffix" or "*" */
export function compileMethodPatterns(
  methods: Readonly<Record<string, McpGuardrailPhase>>,
): (method: string) => Phases {
  const patterns = Object.entries(methods).map(([text, phase]) => ({ text, phase, ...parsePattern(text) }));
  patterns.sort(comparePatterns);
  return (method) => {
    const phase = patterns.find((pattern) => pattern.matches(method))?.phase ?? McpGuardrailPhase.UNSPECIFIED;
    const isFull = phase === McpGuardrailPhase.FULL;
    return {
      request: isFull || phase === McpGuardrailPhase.REQUEST,
      response: isFull || phase === McpGuardrailPhase.RESPONSE,
    };
  };
}

function parsePattern(text: string): Pick<Pattern, "matches" | "rank"> {
  if (text === "*") return { rank: 3, matches: () => true };
  if (text.endsWith("/*")) return { rank: 1, matches: (method) => method.startsWith(text.slice(0, -1)) };
  if (text.startsWith("*/")) return { rank: 2, matches: (method) => method.endsWith(text.slice(1)) };
  return { rank: 0, matches: (method) => method === text };
}

function comparePatterns(a: Pattern, b: Pattern): number {
  return a.rank - b.rank || b.text.length - a.text.length || (a.text < b.text ? -1 : 1);
}
