/**
 * The complete metadata of a Kubernetes object, for the types of foreign kinds. Our own ObjectMeta has only the fields
 * that the gateway reads.
 */
import type { Schema } from "../schema.ts";

const TEXT: Schema = { type: "string" };
const TEXTS: Schema = { type: "object", additionalProperties: TEXT };
const TIME: Schema = { type: "string", format: "date-time" };
const NUMBER: Schema = { type: "integer", format: "int64" };

export const OWNER_REFERENCE: Schema = {
  description: "An object that this one belongs to: when it goes, this one goes.",
  type: "object",
  required: ["apiVersion", "kind", "name", "uid"],
  properties: {
    apiVersion: TEXT,
    kind: TEXT,
    name: TEXT,
    uid: TEXT,
    controller: { type: "boolean" },
    blockOwnerDeletion: { type: "boolean" },
  },
};

export const OBJECT_META: Schema = {
  description: "Metadata of an object in Kubernetes. Either name or generateName is set.",
  type: "object",
  "x-kubernetes-preserve-unknown-fields": true,
  properties: {
    name: TEXT,
    generateName: TEXT,
    namespace: TEXT,
    labels: TEXTS,
    annotations: TEXTS,
    finalizers: { type: "array", items: TEXT },
    ownerReferences: { type: "array", items: { $ref: "OwnerReference" } },
    creationTimestamp: { ...TIME, "x-gw-null": true },
    deletionTimestamp: TIME,
    deletionGracePeriodSeconds: NUMBER,
    generation: NUMBER,
    resourceVersion: TEXT,
    selfLink: TEXT,
    uid: TEXT,
    managedFields: { type: "array", items: { type: "object" } },
  },
};
