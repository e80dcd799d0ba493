/** The validation of an object that the webhook, the directory source and `gwproxy validate` share. */
import { generatedSchema } from "./schema.ts";
import { type Validator, createValidator } from "./validator.ts";

/**
 * Returns all violations of an object whose defaults are filled in. `old` is the object that an update replaces. Pure
 * function.
 */
export const validate: Validator = createValidator(generatedSchema);
