/** The one check of an object, for the webhook, for files that are served, and for files that are only looked at. */
import { generatedSchema } from "./schema.ts";
import { type Validator, createValidator } from "./validator.ts";

/** Everything that is wrong with an object that holds its defaults. `old` is what an update replaces. Pure. */
export const validate: Validator = createValidator(generatedSchema);
