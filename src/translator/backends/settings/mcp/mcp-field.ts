/** The shape of a translator for one field of an `mcp` block; `index.ts` has the table of them. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { BackendMCP } from "../../../../../generated/types/mcp-policy.ts";
import type { McpPolicySchema } from "../../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { Report } from "../../../shared/report.ts";
import type { FullSettingsContext } from "../context.ts";

/** Fields of an McpPolicy. */
export type McpFields = Exclude<MessageInitShape<typeof McpPolicySchema>, { $typeName: string }>;

/** @param report takes paths relative to the field */
export type McpFieldTranslator<F extends keyof BackendMCP> = (
  value: NonNullable<BackendMCP[F]>,
  context: FullSettingsContext,
  report: Report,
) => McpFields;
