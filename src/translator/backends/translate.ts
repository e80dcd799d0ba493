/**
 * One GwBackend → one Backend resource. If anything in it cannot be translated nothing is sent: routes to it answer
 * 500 and `Accepted` says why. Only the policies of one provider in a group may fail alone (backend.md 1 and 6).
 */
import { create } from "@bufbuild/protobuf";
import type { GwBackend } from "../../../generated/types/backend.ts";
import { BackendSchema, type Backend } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { objectId, type ObjectId } from "../../api/object.ts";
import { resourceOf } from "../../ir/encode.ts";
import { backendKey } from "../../ir/keys.ts";
import type { Resource } from "../../ir/resource.ts";
import type { Readable } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import { watchReads } from "../../lib/unread.ts";
import type { Diagnostic } from "../diagnostics.ts";
import { irRef } from "../refs.ts";
import { SecretReader, type SecretCollections } from "../secrets.ts";
import type { ServiceView } from "../service.ts";
import { unservedFields } from "../unserved.ts";
import { backendsOf, translateLlm } from "./llm.ts";
import { translateSettings } from "./settings.ts";
import { translateStatic } from "./static.ts";

export interface BackendContext extends SecretCollections {
  readonly services: Readable<ServiceView>;
}

export interface TranslatedBackend {
  readonly id: ObjectId;
  readonly generation: number;
  readonly key: string;
  /** undefined when it cannot be sent. */
  readonly resource: Resource | undefined;
  /** Keys of Backends that this one needs. */
  readonly uses: readonly string[];
  /** Names of providers: sections that a policy can name. */
  readonly sections: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

export function translateBackend(backend: GwBackend, context: BackendContext, read: Read): TranslatedBackend {
  const id = objectId(backend);
  const key = backendKey(id.namespace, id.name);
  const diagnostics: Diagnostic[] = [];
  const secrets = new SecretReader(context, read, id.namespace);
  const reporter = (severity: Diagnostic["severity"], prefix: string) => (path: string, message: string) =>
    void diagnostics.push({
      code: "backend_invalid",
      severity,
      object: id,
      path: path === "" ? prefix : `${prefix}.${path}`,
      message,
    });
  const { view, unread } = watchReads({ spec: backend.spec });
  const { spec } = view;
  let kind: Backend["kind"] = { case: undefined };
  let uses: string[] = [];
  if (spec.static !== undefined) kind = { case: "static", value: translateStatic(spec.static) };
  else if (spec.ai !== undefined) {
    const value = translateLlm(spec.ai, {
      namespace: id.namespace,
      services: context.services,
      secrets,
      read,
      error: reporter("error", "spec.ai"),
      warning: reporter("warning", "spec.ai"),
    });
    kind = { case: "ai", value };
    uses = backendsOf(value);
  } else reporter("error", "spec")("", "one of static and ai is required");
  const settings = translateSettings(spec.policies, secrets, reporter("error", "spec.policies"));
  const isBroken = () => diagnostics.some(({ severity }) => severity === "error");
  // A translator that gave up has not read the rest either.
  const unserved = isBroken() ? [] : unservedFields("gwproxy.dev/GwBackend", unread(), []);
  for (const { path, message, protects } of unserved) reporter(protects ? "error" : "warning", path)("", message);
  const broken = isBroken();
  const message = create(BackendSchema, {
    key,
    object: irRef(id),
    kind,
    ...(settings === undefined ? {} : { settings }),
  });
  return {
    id,
    generation: backend.metadata.generation ?? 0,
    key,
    resource: broken ? undefined : resourceOf("Backend", message),
    uses: broken ? [] : uses,
    sections: (backend.spec.ai?.groups ?? []).flatMap((group) => group.providers.map((provider) => provider.name)),
    diagnostics,
  };
}
