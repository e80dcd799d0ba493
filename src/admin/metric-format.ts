/**
 * Negotiates the text format of metrics with a scraper (RFC 9110 §12.5.1): the one it prefers, and the Prometheus
 * format when it states no preference.
 */

export type MetricFormat = "prometheus" | "openmetrics";

export const MEDIA_TYPES: Readonly<Record<MetricFormat, string>> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/** Includes the first draft, whose parsers read the final format too. */
const OPENMETRICS_VERSIONS = new Set([undefined, "1.0.0", "0.0.1"]);
const TEXT_VERSIONS = new Set([undefined, "0.0.4"]);
const ANY_TEXT = new Set(["text/plain", "text/*", "*/*"]);

/** @param accept value of the Accept header */
export function formatOf(accept: string): MetricFormat {
  let openmetrics = 0;
  let text = 0;
  for (const range of accept.split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const named = new Map(parameters.map((parameter) => nameAndValue(parameter)));
    const quality = qualityOf(named.get("q"));
    const version = named.get("version");
    if (type === "application/openmetrics-text" && OPENMETRICS_VERSIONS.has(version))
      openmetrics = Math.max(openmetrics, quality);
    if (ANY_TEXT.has(type) && TEXT_VERSIONS.has(version)) text = Math.max(text, quality);
  }
  return openmetrics > 0 && openmetrics >= text ? "openmetrics" : "prometheus";
}

function nameAndValue(parameter: string): [name: string, value: string] {
  const [name = "", value = ""] = parameter.split("=").map((part) => part.trim());
  return [name, value.replace(/^"(.*)"$/, "$1")];
}

/** Returns 0 for a quality value that cannot be parsed. */
function qualityOf(text: string | undefined): number {
  if (text === undefined) return 1;
  return /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(text) ? Number(text) : 0;
}
