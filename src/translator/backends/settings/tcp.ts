/**
 * Translates `tcp` of a backend block: the connect timeout, and the keepalive probes that detect a dead peer.
 * `settings.ts` uses it.
 */
import { create } from "@bufbuild/protobuf";
import type { BackendTCP, Keepalive as ApiKeepalive } from "../../../../generated/types/backend-policies.ts";
import {
  BackendTcpSchema,
  KeepaliveSchema,
  type BackendTcp,
  type Keepalive,
} from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { timerMs } from "../../../lib/time/duration.ts";

export function translateTcp({ connectTimeout, keepalive }: BackendTCP): BackendTcp {
  return create(BackendTcpSchema, {
    connectTimeoutMs: timerMs(connectTimeout),
    ...(keepalive === undefined ? {} : { keepalive: translateKeepalive(keepalive) }),
  });
}

export function translateKeepalive({ time, interval, retries }: ApiKeepalive): Keepalive {
  return create(KeepaliveSchema, { timeMs: timerMs(time), intervalMs: timerMs(interval), probes: retries ?? 0 });
}
