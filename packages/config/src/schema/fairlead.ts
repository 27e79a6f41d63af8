import * as z from "zod";
import { cidrChanges, cidrSources } from "./cidr-sources.ts";
import { replyRouting, replyVia } from "./reply-via.ts";
import { duration, flag, list, oneOf, text, wholeNumber } from "./scalars.ts";
import { serviceRules } from "./service-rules.ts";

/** FairleadConfiguration, fairlead.dev/v1alpha1: a second document in the file of --config. */

export const API_VERSION = "fairlead.dev/v1alpha1";
export const KIND = "FairleadConfiguration";

const fastPathDevices = z.union([z.literal("auto"), z.array(text).readonly()], {
  error: "must be auto, or a list of device names, such as cali*",
});

export const fairleadSchema = z.strictObject({
  apiVersion: z.literal(API_VERSION).optional(),
  kind: z.literal(KIND).optional(),
  serviceProxyName: text.optional(),
  serviceNetwork: flag.optional(),
  multiCNI: z
    .strictObject({
      excludeClusterCIDRs: list("CIDRs").optional(),
      excludeCIDRsFrom: cidrSources.optional(),
      clusterCIDRsFrom: cidrSources.optional(),
      cidrChanges,
      mixedServices: oneOf(["own-endpoints", "skip", "all"]).optional(),
      excludedFrontends: oneOf(["all", "cluster-ip", "excluded-clients"]).optional(),
      masqueradeToExcluded: flag.optional(),
      ownershipAnnotation: flag.optional(),
      serviceRules: serviceRules.optional(),
      protectedServices: list("services").optional(),
      consentNamespace: text.optional(),
    })
    .prefault({}),
  resetStaleTCP: flag.optional(),
  replyVia: replyVia.optional(),
  replyRouting,
  shadow: flag.optional(),
  shadowGracePeriod: duration.optional(),
  serviceMetrics: z
    .strictObject({
      namespaces: list("namespaces").optional(),
      // Their text is made in one go: 10,000 take some tens of milliseconds.
      maxSeries: wholeNumber(1, 10_000).optional(),
    })
    .prefault({}),
  nftables: z
    .strictObject({ fastPath: z.strictObject({ devices: fastPathDevices.optional() }).optional() })
    .prefault({}),
  ipvs: z.strictObject({ fallback: flag.optional() }).prefault({}),
  userspace: z
    .strictObject({
      tcpIdleTimeout: duration.optional(),
      maxSockets: wholeNumber(3).optional(),
      maxSocketsPerService: wholeNumber(2).optional(),
    })
    .prefault({}),
});

export type FairleadInput = z.output<typeof fairleadSchema>;
