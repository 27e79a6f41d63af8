import { ignored } from "./reading.ts";
import type { SourceKind } from "./source.ts";

const USELESS =
  "nothing is learned from it: EndpointSlices of Services never hold addresses of user-defined networks; use a rule of " +
  "multiCNI.serviceRules with namespaceLabel k8s.ovn.org/primary-user-defined-network";

/**
 * OVN-Kubernetes' user-defined networks. The standard EndpointSlices hold addresses of the default network, and the
 * mirrored ones lack the label kubernetes.io/service-name; a user of one namespace may define any subnet. So they
 * decide nothing. A configuration that names the source is taken, with a warning. OVN-Kubernetes:
 * go-controller/pkg/clustermanager/endpointslicemirror.
 */
export const ovnKubernetesUDNs: SourceKind = {
  resources: [],
  useless: USELESS,
  read: () => ignored(USELESS),
};
