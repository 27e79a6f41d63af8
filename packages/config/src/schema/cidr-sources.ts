import * as z from "zod";
import { CIDR_SOURCES } from "../cidr-source-names.ts";
import { duration, list, text, wholeNumber } from "./scalars.ts";

const SOURCE_FORM = `must be one of ${CIDR_SOURCES.join(", ")}, or {source: custom, resource: plural.version.group, fields: [spec.cidr]}, with within: [CIDR] to believe it in these CIDRs only`;

const byName = z.enum(CIDR_SOURCES).transform((source) => ({ source }));
const common = { within: list("CIDRs").optional(), namespace: text.optional(), name: text.optional() };
const withSettings = z.strictObject({ source: z.enum(CIDR_SOURCES), vpcs: list("VPCs").optional(), ...common });
const custom = z.strictObject({ source: z.literal("custom"), resource: text, fields: list("fields"), ...common });

/** Names, or blocks with `source` and what it needs. */
export const cidrSources = z
  .array(z.union([byName, withSettings, custom], { error: SOURCE_FORM }), { error: "must be a list of sources" })
  .readonly();

export const cidrChanges = z
  .strictObject({
    debounce: duration.optional(),
    removalDelay: duration.optional(),
    maxForeignPercent: wholeNumber(0, 100).optional(),
  })
  .prefault({});
