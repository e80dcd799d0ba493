/** The servers for machines, each on a port of its own: metrics for scrapers, readiness and health for probes. */
import { H3, type H3Event } from "h3";
import { refuseOtherMethods, serveOn, text, type RunningServer, type ServerAddress } from "./http.ts";
import { formatOf, MEDIA_TYPES, type MetricFormat } from "./metric-format.ts";

export async function startMetricsServer(options: {
  readonly address: ServerAddress;
  readonly render: (format: MetricFormat) => Promise<string>;
}): Promise<RunningServer> {
  const app = new H3({ silent: true });
  const metrics = async ({ req }: H3Event): Promise<Response> => {
    const format = formatOf(req.headers.get("accept") ?? "");
    return new Response(await options.render(format), {
      headers: { "content-type": MEDIA_TYPES[format], vary: "accept" },
    });
  };
  app.get("/metrics", metrics);
  app.get("/stats/prometheus", metrics);
  refuseOtherMethods(app, [
    ["/metrics", "GET"],
    ["/stats/prometheus", "GET"],
  ]);
  return serveOn(app, options.address);
}

/**
 * Answers 200 when nothing is pending.
 * @param options.pending returns the names of what startup still waits for
 */
export async function startReadinessServer(options: {
  readonly address: ServerAddress;
  readonly pending: () => readonly string[];
}): Promise<RunningServer> {
  const app = new H3({ silent: true });
  app.get("/healthz/ready", () => {
    const pending = options.pending();
    return pending.length === 0 ? text("ready\n") : text(`not ready, pending: ${pending.join(", ")}\n`, 500);
  });
  refuseOtherMethods(app, [["/healthz/ready", "GET"]]);
  return serveOn(app, options.address);
}

/** Serves the probes of the controller, under the paths that Kubernetes components use. */
export async function startHealthServer(options: {
  readonly address: ServerAddress;
  /** Returns whether the controller has read the cluster; until then /readyz answers 503. */
  readonly isReady: () => boolean;
}): Promise<RunningServer> {
  const app = new H3({ silent: true });
  app.get("/healthz", () => text("ok\n"));
  app.get("/readyz", () => (options.isReady() ? text("ok\n") : text("not ready\n", 503)));
  refuseOtherMethods(app, [
    ["/healthz", "GET"],
    ["/readyz", "GET"],
  ]);
  return serveOn(app, options.address);
}
