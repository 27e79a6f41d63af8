import type { Program } from "../command-line.ts";
import { durationFlag, ipPort, flagTypes as type } from "../table/scalars.ts";

/** The flags of `fairlead-slices`, named as Kubernetes' controllers name theirs. */
export const SLICES: Program = {
  name: "fairlead-slices",
  description:
    "Writes EndpointSlices of pods' secondary networks, for Services with the annotation\n" +
    "k8s.v1.cni.cncf.io/service-network and the label service.kubernetes.io/service-proxy-name.",
  groups: [
    {
      title: "API server",
      flags: [
        {
          name: "kubeconfig",
          type: type.string,
          help: "Path of a kubeconfig file. Default, without --master: the service account of the pod.",
        },
        {
          name: "master",
          type: type.string,
          help: "URL of the API server. Overrides the server of the kubeconfig.",
        },
        {
          name: "allow-exec-credentials",
          type: type.boolean,
          help: "Run the credential plugins that the kubeconfig names (users[].user.exec).",
        },
      ],
    },
    {
      title: "EndpointSlices",
      flags: [
        {
          name: "service-proxy-name",
          type: type.string,
          help: "Serve only services whose label service.kubernetes.io/service-proxy-name has this value. Default: any value.",
        },
        {
          name: "max-endpoints-per-slice",
          type: type.int32,
          default: "100",
          help: "Maximum number of endpoints of an EndpointSlice, from 1 to 1000.",
        },
      ],
    },
    {
      title: "Leader election",
      flags: [
        {
          name: "leader-elect",
          type: type.boolean,
          default: "true",
          help: "Write only while holding the lease, so that several replicas can run.",
        },
        {
          name: "leader-elect-lease-duration",
          type: durationFlag,
          default: "15s",
          help: "How long other candidates wait for a leader that does not renew its lease. Whole seconds.",
        },
        {
          name: "leader-elect-renew-deadline",
          type: durationFlag,
          default: "10s",
          help: "How long a leader that cannot renew its lease keeps writing. Less than the lease duration.",
        },
        {
          name: "leader-elect-retry-period",
          type: durationFlag,
          default: "2s",
          help: "Time between two attempts to acquire or renew the lease. Less than the renew deadline.",
        },
        {
          name: "leader-elect-resource-name",
          type: type.string,
          default: "fairlead-slices",
          help: "Name of the Lease.",
        },
        {
          name: "leader-elect-resource-namespace",
          type: type.string,
          default: "kube-system",
          help: "Namespace of the Lease.",
        },
      ],
    },
    {
      title: "Process",
      flags: [
        {
          name: "metrics-bind-address",
          type: ipPort,
          default: "0.0.0.0:10360",
          help: "Address and port that serve /healthz, /livez, /readyz and /metrics.",
        },
        { name: "v", type: type.level, help: "Log verbosity, from 0 (quiet) to 5 (everything)." },
        { name: "logging-format", type: type.string, default: "text", help: "Log format: text or json." },
        { name: "version", type: type.version, help: "Print the version, and exit." },
      ],
    },
  ],
};
