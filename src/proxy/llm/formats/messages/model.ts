/** What differs between Claude models, by catalog tag or by the version in the name. */

const ADAPTIVE_TAG = "adaptive_thinking";
const NO_SAMPLING_TAG = "no_sampling";

/** Matches family and version, in either order: `claude-opus-4-7`, `claude-3-5-sonnet-20241022`, `claude-sonnet-5`. */
const FAMILY_FIRST = /claude-([a-z]+)-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/;
const VERSION_FIRST = /claude-(?:v?\d|instant)/;

interface Version {
  readonly family: string;
  /** 4.7 is 407. */
  readonly number: number;
}

function versionOf(name: string): Version | undefined {
  const found = FAMILY_FIRST.exec(name);
  if (found === null) return undefined;
  return { family: found[1] as string, number: Number(found[2]) * 100 + Number(found[3] ?? 0) };
}

/** Whether the model decides by itself how much to think. Names that are not known yet count as newer ones. */
export function thinksAdaptively(model: string, tags: ReadonlySet<string>): boolean {
  if (tags.has(ADAPTIVE_TAG)) return true;
  const name = model.toLowerCase();
  if (!name.includes("claude-") || VERSION_FIRST.test(name)) return false;
  const version = versionOf(name);
  return version === undefined || version.number >= 407;
}

/** Whether the model refuses temperature, top_p and top_k. */
export function refusesSampling(model: string, tags: ReadonlySet<string>): boolean {
  if (tags.has(NO_SAMPLING_TAG)) return true;
  const version = versionOf(model.toLowerCase());
  return version?.family === "opus" && version.number >= 407;
}
