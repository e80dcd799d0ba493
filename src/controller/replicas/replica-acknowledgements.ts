/**
 * Lets an acknowledgement that reaches one replica of the controller count for the one that writes statuses: a data
 * plane is connected to any replica, and only the leader writes. `controller-core.ts` uses it.
 *
 *     follower:  data plane ─ACK, NACK─▶ own acknowledgements ─▶ report ─▶ ConfigMap
 *     everyone:  ConfigMaps of the others ─▶ report ─▶ acknowledgements of the status feed
 *
 * A report names, for each Gateway, a digest of the resources that its data planes should hold, and the keys that none
 * has acknowledged. A replica takes a report once it holds the same resources; until then one of both has not read the
 * last change. As with a data plane that is connected here, what was acknowledged stays so until it is removed.
 *
 * A resource that is removed and comes back looks the same in both digests, so a report from before the removal would
 * count for the new one. For some seconds after a removal no report counts for the key, and then the latest one does: by
 * that time a replica that knows of the removal has told what is missing.
 */
import type { KubeObject, ObjectId } from "../../api/object.ts";
import { isRecord } from "../../lib/is-record.ts";
import type { Logger } from "../../lib/log.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { ResourceType } from "../../ir/resource.ts";
import type { ObjectEvent } from "../../sources/source.ts";
import type { TranslationStep } from "../../translator/translator.ts";
import type { AckedResource } from "../../xds/server/session.ts";
import type { StreamId } from "../../xds/server/discovery.ts";
import { createAcknowledgements } from "../acknowledgements.ts";
import type { StatusFeed } from "../status-feed.ts";
import { parseReport, printReport, type GatewayReport, type Report, type ReportedRefusal } from "./report.ts";
import { REPORT_KEY, REPORT_LABELS, REPORT_PREFIX, reportName, type ReportStore } from "./report-store.ts";
import { isTracked, TrackedResources } from "./tracked-resources.ts";

export interface ReplicaAcknowledgementsOptions {
  readonly namespace: string;
  /** Name of this replica. */
  readonly identity: string;
  readonly store: Pick<ReportStore, "seen" | "write" | "stop">;
  /** Receives the answers of the data planes of other replicas. */
  readonly answers: StatusFeed["answers"];
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
}

/** More than a replica needs to read a change, wait for more of them (report-store.ts), and write. */
const SETTLE_MS = 5_000;

/** Another replica, whose data planes together answer like one stream. */
interface Peer {
  readonly stream: StreamId;
  report: Report;
}

/** Keys of a Gateway that were removed together. */
interface Removal {
  readonly cancel: () => void;
}

const NOTHING: Report = { gateways: {}, refused: [] };

export class ReplicaAcknowledgements {
  readonly #options: ReplicaAcknowledgementsOptions;
  readonly #tracked = new TrackedResources();
  /** Answers of the data planes of this replica alone. */
  readonly #own = createAcknowledgements();
  /** Gateways with a data plane that has answered this replica. */
  readonly #answering = new Set<string>();
  readonly #peers = new Map<string, Peer>();
  /** What was removed last, under "gateway key", by the removal that it was part of. */
  readonly #removed = new Map<string, Removal>();
  #isLeader = false;
  #warned = false;

  constructor(options: ReplicaAcknowledgementsOptions) {
    this.#options = options;
  }

  /** Passes the answers of this replica's data planes on, and notes them for the report. */
  readonly answers: StatusFeed["answers"] = {
    onAck: (gateway, resources, stream) => {
      this.#options.answers.onAck(gateway, resources, stream);
      this.#answering.add(gateway);
      if (this.#own.ack(gateway, stream, resources).length > 0) this.#report();
    },
    onNack: (gateway, refused, stream) => {
      this.#options.answers.onNack(gateway, refused, stream);
      this.#answering.add(gateway);
      this.#own.nack(gateway, stream, refused);
      this.#report();
    },
    onClose: (gateway, stream) => {
      this.#options.answers.onClose(gateway, stream);
      this.#own.closed(stream);
    },
  };

  /** Only followers report: the leader reads what it is told itself. */
  lead(isLeader: boolean): void {
    this.#isLeader = isLeader;
    this.#report();
  }

  /** Takes the reports out of a batch of events. @returns the other events */
  take(events: readonly ObjectEvent[]): readonly ObjectEvent[] {
    const { namespace } = this.#options;
    // Nearly all batches hold none; those are passed as they are.
    if (!events.some((event) => isReport(event, namespace))) return events;
    return events.filter((event) => {
      if (!isReport(event, namespace)) return true;
      this.#observe(event.type === "set" ? event.object : event.id);
      return false;
    });
  }

  follow(step: Pick<TranslationStep, "byGateway" | "update">): void {
    for (const [gateway, { removed }] of step.byGateway) this.#own.forget(gateway, removed);
    this.#own.forgetEverywhere(step.update.removed);
    const changed = this.#tracked.follow(step);
    for (const [gateway, { removed }] of step.byGateway)
      this.#settle(
        gateway,
        removed.filter(({ type }) => isTracked(type)).map(({ key }) => key),
      );
    for (const gateway of changed) {
      if (this.#tracked.digest(gateway) === undefined) this.#answering.delete(gateway);
      for (const { stream, report } of this.#peers.values()) this.#acknowledge(stream, gateway, report);
    }
    if (changed.some((gateway) => this.#answering.has(gateway))) this.#report();
  }

  stop(): Promise<void> {
    for (const { cancel } of this.#removed.values()) cancel();
    this.#removed.clear();
    return this.#options.store.stop();
  }

  /** Lets reports count for removed keys only after a while. */
  #settle(gateway: string, keys: readonly string[]): void {
    if (keys.length === 0) return;
    const ids = keys.map((key) => `${gateway} ${key}`);
    const removal: Removal = {
      cancel: this.#options.clock.after(SETTLE_MS, () => {
        // A later removal of the same key has an end of its own.
        for (const id of ids) if (this.#removed.get(id) === removal) this.#removed.delete(id);
        for (const { stream, report } of this.#peers.values()) this.#acknowledge(stream, gateway, report);
      }),
    };
    for (const id of ids) this.#removed.set(id, removal);
  }

  #report(): void {
    if (this.#isLeader) this.#options.store.write(() => undefined);
    else if (this.#answering.size > 0) this.#options.store.write(() => this.#print());
  }

  #print(): string | undefined {
    if (this.#isLeader) return undefined;
    const gateways = Object.fromEntries(
      Array.from(this.#answering, (gateway) => [gateway, this.#reportOf(gateway)] as const).filter(
        (entry): entry is [string, GatewayReport] => entry[1] !== undefined,
      ),
    );
    const { text, leftOut } = printReport({ gateways, refused: this.#own.refusals() });
    if (leftOut > 0 && !this.#warned)
      this.#options.log.warn("there is no room to tell the other replicas what all data planes acknowledged", {
        gateways: leftOut,
      });
    this.#warned = leftOut > 0;
    return text;
  }

  #reportOf(gateway: string): GatewayReport | undefined {
    const resources = this.#tracked.digest(gateway);
    if (resources === undefined) return undefined;
    const missing = this.#tracked.of(gateway).filter(({ type, key }) => type !== "Bind" && !this.#own.has(key));
    return { resources, bound: this.#own.hasBind(gateway), missing: missing.map(({ key }) => key) };
  }

  #observe(object: KubeObject | ObjectId): void {
    const text = textOf(object);
    const name = "metadata" in object ? object.metadata.name : object.name;
    if (name === reportName(this.#options.identity)) return this.#options.store.seen(text);
    const report = text === undefined ? undefined : parseReport(text);
    const peer = this.#peers.get(name);
    if (text === undefined) {
      this.#peers.delete(name);
      if (peer !== undefined) for (const gateway of gatewaysOf(peer.report)) this.#close(gateway, peer.stream);
      return;
    }
    if (report === undefined) {
      this.#options.log.warn("the report of another replica cannot be read; is it of another version?", { name });
      return;
    }
    const known = peer ?? { stream: Symbol(name), report: NOTHING };
    this.#peers.set(name, known);
    const before = known.report;
    known.report = report;
    const had = new Map(before.refused.map((refusal) => [idOf(refusal), refusal.reason]));
    const news = report.refused.filter((refusal) => had.get(idOf(refusal)) !== refusal.reason);
    this.#mend(known.stream, before.refused, report.refused);
    for (const gateway of Object.keys(report.gateways))
      if (JSON.stringify(before.gateways[gateway]) !== JSON.stringify(report.gateways[gateway]))
        this.#acknowledge(known.stream, gateway, report);
    for (const [gateway, refused] of Map.groupBy(news, (each) => each.gateway))
      this.#options.answers.onNack(gateway, refused.map(rejected), known.stream);
  }

  /** Takes back what a peer refused before and no longer does. */
  #mend(stream: StreamId, before: readonly ReportedRefusal[], now: readonly ReportedRefusal[]): void {
    const still = new Set(now.map(idOf));
    for (const refusal of before)
      if (!still.has(idOf(refusal)))
        this.#options.answers.onAck(refusal.gateway, [{ ...rejected(refusal), version: "" }], stream);
  }

  #acknowledge(stream: StreamId, gateway: string, report: Report): void {
    const told = report.gateways[gateway];
    if (told === undefined || told.resources !== this.#tracked.digest(gateway)) return;
    const missing = new Set(told.missing);
    const refused = new Set(report.refused.filter((each) => each.gateway === gateway).map(({ key }) => key));
    const acked = this.#tracked
      .of(gateway)
      .filter(({ key }) => !this.#removed.has(`${gateway} ${key}`) && !refused.has(key))
      .filter(({ type, key }) => (type === "Bind" ? told.bound : !missing.has(key)))
      .map(({ type, key }): AckedResource => ({ type, key, version: "" }));
    if (acked.length > 0) this.#options.answers.onAck(gateway, acked, stream);
  }

  #close(gateway: string, stream: StreamId): void {
    this.#options.answers.onClose(gateway, stream);
  }
}

function isReport(event: ObjectEvent, ownNamespace: string): event is Extract<ObjectEvent, { type: "set" | "delete" }> {
  if (event.type === "set") {
    const { kind, metadata } = event.object;
    return kind === "ConfigMap" && metadata.namespace === ownNamespace && hasReportLabels(metadata.labels ?? {});
  }
  // A deleted object has no labels any more.
  if (event.type !== "delete" || event.id.kind !== "ConfigMap" || event.id.namespace !== ownNamespace) return false;
  return event.id.name.startsWith(REPORT_PREFIX);
}

function hasReportLabels(labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(REPORT_LABELS).every(([name, value]) => labels[name] === value);
}

/** @returns undefined for an object that was deleted */
function textOf(object: KubeObject | ObjectId): string | undefined {
  if (!("metadata" in object)) return undefined;
  const data: unknown = "data" in object ? object.data : undefined;
  const text = isRecord(data) ? data[REPORT_KEY] : undefined;
  return typeof text === "string" ? text : "";
}

function gatewaysOf({ gateways, refused }: Report): Set<string> {
  return new Set([...Object.keys(gateways), ...refused.map(({ gateway }) => gateway)]);
}

function rejected({ type, key, reason }: ReportedRefusal): { type: ResourceType; key: string; reason: string } {
  // A type that this version does not know leads to no object, so nothing is written for it.
  return { type: type as ResourceType, key, reason };
}

function idOf({ gateway, type, key }: ReportedRefusal): string {
  return `${gateway} ${type} ${key}`;
}
