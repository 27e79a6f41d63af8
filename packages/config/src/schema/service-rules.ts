import * as z from "zod";
import { list, text } from "./scalars.ts";

const RULE_FORM =
  "must be {annotation: NAME, ownership: foreign} or {namespaceLabel: NAME, ownership: foreign}, with in: [VALUE], notIn: [VALUE] or notIn: [{defaultVPC: true}] to match only some values; ownership is ours or foreign, excludedFrontends all (the default), cluster-ip or excluded-clients";

/** A value, or the name that kube-ovn's default VPC has. */
const value = z.union([text, z.strictObject({ defaultVPC: z.literal(true) })], {
  error: "must be a value, or {defaultVPC: true}",
});

const outcome = {
  in: list("values").optional(),
  notIn: z.array(value, { error: "must be a list of values" }).readonly().optional(),
  ownership: z.enum(["ours", "foreign"]),
  excludedFrontends: z.enum(["all", "cluster-ip", "excluded-clients"]).optional(),
};
/** A qualified name of Kubernetes. */
const name = text.regex(/^(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9](?:[-\w.]*[A-Za-z0-9])?$/, {
  error: "must be a name, such as ovn.kubernetes.io/vpc",
});

const byAnnotation = z.strictObject({ annotation: name, ...outcome });
const byNamespaceLabel = z.strictObject({ namespaceLabel: name, ...outcome });

/** Rules that say of Services who owns them. */
export const serviceRules = z
  .array(z.union([byAnnotation, byNamespaceLabel], { error: RULE_FORM }), { error: "must be a list of rules" })
  .readonly();
