/**
 * Translates one GwModel into one Model resource; `declare.ts` uses it. If any part fails to translate, nothing is sent:
 * requests for the model are answered as if it did not exist, and the condition `ResolvedRefs` gives the reason.
 */
import { create } from "@bufbuild/protobuf";
import type { GwModel } from "../../../generated/types/model.ts";
import { ModelSchema, type Model } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { objectId, type ObjectId } from "../../api/object.ts";
import { createdAtMs } from "../../api/refs.ts";
import { modelKey } from "../../ir/keys.ts";
import type { Readable } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import { trackAccess } from "../../lib/track-access.ts";
import type { Diagnostic } from "../shared/diagnostics.ts";
import { translateAuthorization } from "../policies/shared/authorization.ts";
import { ServiceReader } from "../policies/shared/external-service.ts";
import type { BackendCollections } from "../references/backend-refs.ts";
import { irRef } from "../references/refs.ts";
import { SecretReader, type SecretCollections } from "../references/secrets.ts";
import { within, type Report } from "../shared/report.ts";
import { unsupportedFields } from "../shared/unsupported-fields.ts";
import { translateModelProvider } from "./provider.ts";
import { translateVirtualModel, type ModelName } from "./virtual.ts";

export interface ModelContext extends SecretCollections, BackendCollections {
  /** Every GwModel that exists, by its name. */
  readonly models: Readable<ModelName>;
}

export interface TranslatedModel {
  readonly id: ObjectId;
  readonly generation: number;
  readonly key: string;
  /** Without the Backends that offer the model; undefined when an error prevents sending it. */
  readonly message: Model | undefined;
  /** Keys of the Backends that it uses. */
  readonly uses: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

export function translateModel(model: GwModel, context: ModelContext, read: Read): TranslatedModel {
  const id = objectId(model);
  const { namespace } = id;
  const key = modelKey(namespace, id.name);
  const diagnostics: Diagnostic[] = [];
  const report: Report = (path, message, severity = "error") =>
    void diagnostics.push({ code: "model_invalid", severity, object: id, path, message });
  const { parentRefs: _parentRefs, ...rest } = model.spec;
  const { view, unread } = trackAccess({ spec: rest });
  const { spec } = view;
  const error = within(report, "spec");
  const services = new ServiceReader(context, read, id);
  const settings = { secrets: new SecretReader(context, read, namespace), services };
  const kind =
    spec.virtualModel === undefined
      ? translateModelProvider(spec, {
          namespace,
          services: context.services,
          pools: context.pools,
          settings,
          read,
          error,
        })
      : translateVirtualModel(spec.virtualModel, {
          namespace,
          models: context.models,
          services,
          read,
          error: within(error, "virtualModel"),
        });
  const rules = spec.policies?.authorization;
  const message = create(ModelSchema, {
    key,
    object: irRef(id),
    createdAtMs: BigInt(createdAtMs(model)),
    match: spec.match?.model ?? id.name,
    internal: spec.visibility === "Internal",
    ...(rules === undefined
      ? {}
      : {
          authorization: translateAuthorization(rules, "authorization", { report: within(error, "policies") }, "llm"),
        }),
    ...(kind === undefined ? {} : { kind }),
  });
  const isBroken = (): boolean => diagnostics.some(({ severity }) => severity === "error");
  // Check for unsupported fields only after a complete translation, as for backends.
  const unserved = isBroken() ? [] : unsupportedFields("gwproxy.dev/GwModel", unread(), []);
  for (const field of unserved) report(field.path, field.message, field.failsClosed ? "error" : "warning");
  const broken = isBroken();
  return {
    id,
    generation: model.metadata.generation ?? 0,
    key,
    message: broken ? undefined : message,
    uses: broken ? [] : [...new Set([...services.uses, ...backendsOfModel(message)])].sort(),
    diagnostics,
  };
}

function backendsOfModel({ kind }: Model): string[] {
  return kind.case === "provider" && kind.value.backend !== "" ? [kind.value.backend] : [];
}
