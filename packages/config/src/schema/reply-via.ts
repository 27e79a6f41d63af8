import * as z from "zod";
import { MARK_RANGES } from "../mark-ranges.ts";
import { oneOf, text, wholeNumber } from "./scalars.ts";

const VIA_FORM = "must be auto, or a list of {interface: NAME} or {interface: NAME, table: NUMBER}";

const uplink = z.strictObject({ interface: text, table: wholeNumber(1, 2 ** 32 - 1).optional() });

/** By which interfaces answers to clients leave. */
export const replyVia = z.union([z.literal("auto"), z.array(uplink).readonly()], { error: VIA_FORM });

/** What routing them takes. */
export const replyRouting = z
  .strictObject({
    markMask: wholeNumber(1, 2 ** 32 - 1).optional(),
    rulePriority: wholeNumber(1, 32_765).optional(),
    firstTable: wholeNumber(256, 2 ** 32 - 256).optional(),
    unusedMarks: z
      .array(oneOf(Object.keys(MARK_RANGES)), { error: "must be a list of names" })
      .readonly()
      .optional(),
  })
  .prefault({});
