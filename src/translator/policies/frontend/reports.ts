/**
 * Translates the reports of a Gateway about its requests: `accessLog`, `tracing` and `metrics` in `frontend` of a
 * GwPolicy. `frontend.ts` uses it.
 */
import { create } from "@bufbuild/protobuf";
import type {
  AccessLog as ApiLog,
  LogAttribute,
  LogAttributes,
  MetricLabels as ApiLabels,
  OtlpEndpoint as ApiEndpoint,
  Tracing as ApiTracing,
} from "../../../../generated/types/frontend.ts";
import {
  AccessLogSchema,
  MetricLabelsSchema,
  NamedExpressionSchema,
  OtlpAccessLogSchema,
  OtlpEndpointSchema,
  ReportAttributesSchema,
  TracingSchema,
  type AccessLog,
  type MetricLabels,
  type NamedExpression,
  type OtlpAccessLog,
  type OtlpEndpoint,
  type ReportAttributes,
  type Tracing,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Report } from "../../shared/report.ts";
import { phaseOfFrontend } from "../shared/expression-phase.ts";
import type { ServiceReader } from "../shared/external-service.ts";
import { checkExpression } from "../shared/unit.ts";
import { RESERVED_METRIC_LABELS } from "../../../../generated/metric-labels.ts";
import { quote } from "../../../lib/quote.ts";

export interface ReportsContext {
  /** Collects the OTLP collectors that are referenced. */
  readonly services: ServiceReader;
  /** Takes paths relative to `spec.frontend`. */
  readonly report: Report;
}

export function translateAccessLog(block: ApiLog, context: ReportsContext): AccessLog {
  const filter = expression(block.filter, "accessLog.filter", context);
  const attributes = attributesOf(block.attributes, "accessLog.attributes", context);
  return create(AccessLogSchema, {
    otelNames: block.preset === "Otel",
    filter,
    ...(attributes === undefined ? {} : { attributes }),
    ...(block.otlp === undefined ? {} : { otlp: otlpOf(block.otlp, { filter, attributes }, context) }),
  });
}

function otlpOf(
  otlp: NonNullable<ApiLog["otlp"]>,
  parent: { readonly filter: string; readonly attributes: ReportAttributes | undefined },
  context: ReportsContext,
): OtlpAccessLog {
  const attributes = attributesOf(otlp.attributes, "accessLog.otlp.attributes", context) ?? parent.attributes;
  return create(OtlpAccessLogSchema, {
    endpoint: endpointOf(otlp, "accessLog.otlp", "/v1/logs", context),
    filter: expression(otlp.filter, "accessLog.otlp.filter", context) || parent.filter,
    ...(attributes === undefined ? {} : { attributes }),
  });
}

export function translateTracing(block: ApiTracing, context: ReportsContext): Tracing {
  const attributes = attributesOf(block.attributes, "tracing.attributes", context);
  return create(TracingSchema, {
    endpoint: endpointOf(block, "tracing", "/v1/traces", context),
    ...(attributes === undefined ? {} : { attributes }),
    resources: named(block.resources, "tracing.resources", context),
    randomSampling: expression(block.randomSampling, "tracing.randomSampling", context),
    clientSampling: expression(block.clientSampling, "tracing.clientSampling", context),
    filter: expression(block.filter, "tracing.filter", context),
  });
}

export function translateMetrics({ attributes }: ApiLabels, context: ReportsContext): MetricLabels {
  const path = "metrics.attributes.add";
  const names = new LabelNames();
  const add = named(attributes.add, path, context).flatMap(({ name, expression: value }, at) => {
    const taken = names.take(name);
    if ("spelled" in taken) return [create(NamedExpressionSchema, { name: taken.spelled, expression: value })];
    context.report(`${path}[${at}].name`, taken.error);
    return [];
  });
  return create(MetricLabelsSchema, { add });
}

function endpointOf(endpoint: ApiEndpoint, path: string, usual: string, context: ReportsContext): OtlpEndpoint {
  const service = context.services.resolve(endpoint, path, context.report);
  const given = service.place.case === "origin" ? service.place.value.path : "";
  const isHttp = endpoint.protocol === "HTTP";
  return create(OtlpEndpointSchema, {
    service,
    http: isHttp,
    // A URL without a path is often written with a lone slash, so "/" counts as no path.
    path: isHttp ? (endpoint.path ?? (given === "" || given === "/" ? usual : given)) : "",
  });
}

function attributesOf(
  attributes: LogAttributes | undefined,
  path: string,
  context: ReportsContext,
): ReportAttributes | undefined {
  if (attributes === undefined) return undefined;
  return create(ReportAttributesSchema, {
    remove: [...(attributes.remove ?? [])],
    add: named(attributes.add, `${path}.add`, context),
  });
}

function named(
  attributes: readonly LogAttribute[] | undefined,
  path: string,
  context: ReportsContext,
): NamedExpression[] {
  return (attributes ?? []).map(({ name, expression: text }, at) =>
    create(NamedExpressionSchema, { name, expression: expression(text, `${path}[${at}].expression`, context) }),
  );
}

function expression(text: string | undefined, path: string, context: ReportsContext): string {
  return checkExpression(text, path, context, phaseOfFrontend(path));
}

const RESERVED: ReadonlySet<string> = new Set(RESERVED_METRIC_LABELS);

/**
 * Spells the labels of one policy as Prometheus requires, and rejects duplicates: two labels of one name would make the
 * whole metrics page unreadable for a scraper.
 */
class LabelNames {
  /** The names as users wrote them, by their Prometheus spelling. */
  readonly #given = new Map<string, string>();

  /** @returns the Prometheus spelling, or why the name is rejected */
  take(name: string): { readonly spelled: string } | { readonly error: string } {
    const spelled = spell(name);
    const other = this.#given.get(spelled);
    const shown = spelled === name ? quote(name) : `${quote(name)}, in metrics ${quote(spelled)},`;
    if (spelled.startsWith("__")) return { error: `${shown} begins as only names of Prometheus itself do` };
    if (RESERVED.has(spelled)) return { error: `${shown} is a label that these metrics have already` };
    if (other !== undefined) return { error: `${shown} is the same label as ${quote(other)}` };
    this.#given.set(spelled, name);
    return { spelled };
  }
}

/**
 * Replaces every character that a label name cannot have by an underscore
 * (https://prometheus.io/docs/concepts/data_model).
 */
function spell(name: string): string {
  const spelled = name.replaceAll(/[^a-zA-Z0-9_]/gu, "_");
  return /^[0-9]/.test(spelled) ? `_${spelled}` : spelled;
}
