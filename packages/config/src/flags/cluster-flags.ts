import type { FlagGroup } from "./definition.ts";
import * as type from "./types.ts";

/** Where the objects come from, which network owns them, what this node is. */
export const CLUSTER_FLAGS: readonly FlagGroup[] = [
  {
    title: "Configuration file and API server",
    flags: [
      {
        name: "config",
        type: type.string,
        withConfig: true,
        help: "Path of a file with a KubeProxyConfiguration and, after ---, a FairleadConfiguration.",
      },
      {
        name: "kubeconfig",
        type: type.string,
        fields: ["clientConnection.kubeconfig"],
        help: "Path of a kubeconfig file. Without it and --master: the service account of the pod.",
      },
      {
        name: "master",
        type: type.string,
        withConfig: true,
        help: "URL of the API server, in place of the kubeconfig's.",
      },
      {
        name: "allow-exec-credentials",
        type: type.boolean,
        withConfig: true,
        help: "Let the kubeconfig start programs or ask servers for credentials (exec, auth-provider).",
      },
      {
        name: "kube-api-content-type",
        type: type.string,
        fields: ["clientConnection.contentType"],
        defaultText: "application/vnd.kubernetes.protobuf",
        help: "Content type of requests to the API server. Taken for compatibility: Fairlead always asks for JSON.",
      },
      {
        name: "kube-api-qps",
        type: type.float32,
        fields: ["clientConnection.qps"],
        defaultText: "5",
        help: "Requests a second to the API server; 0 is the default, negative is no limit.",
      },
      {
        name: "kube-api-burst",
        type: type.int32,
        fields: ["clientConnection.burst"],
        defaultText: "10",
        help: "Requests at once to the API server; 0 is the default.",
      },
      {
        name: "config-sync-period",
        type: type.duration,
        fields: ["configSyncPeriod"],
        defaultText: "15m0s",
        help: "How often what was read from the API server is refreshed.",
      },
      {
        name: "feature-gates",
        type: type.mapStringBool,
        fields: ["featureGates"],
        help: "Feature gates, Name=true|false. Those that mean nothing here are ignored; unknown ones with a warning.",
      },
    ],
  },
  {
    title: "More than one pod network",
    flags: [
      {
        name: "exclude-cluster-cidr",
        type: type.strings,
        fields: ["multiCNI.excludeClusterCIDRs"],
        document: "fairlead",
        withConfig: true,
        help: "Pod CIDRs whose services another network serves, IPv4 and IPv6; repeatable or comma separated.",
      },
      {
        name: "mixed-services",
        type: type.string,
        fields: ["multiCNI.mixedServices"],
        document: "fairlead",
        withConfig: true,
        defaultText: "own-endpoints",
        help: "Services with endpoints inside and outside of the excluded CIDRs: own-endpoints (use those outside), skip (leave the service alone) or all (use every endpoint).",
      },
      {
        name: "excluded-frontends",
        type: type.string,
        fields: ["multiCNI.excludedFrontends"],
        document: "fairlead",
        withConfig: true,
        defaultText: "all",
        help: "What of an excluded service is left to the other network: all, or cluster-ip alone (node ports, external and load-balancer addresses are then proxied here).",
      },
      {
        name: "ownership-annotation",
        type: type.boolean,
        fields: ["multiCNI.ownershipAnnotation"],
        document: "fairlead",
        withConfig: true,
        defaultText: "true",
        help: "Whether the annotation fairlead.dev/ownership of a Service overrides the CIDRs.",
      },
      {
        name: "state-dir",
        type: type.string,
        withConfig: true,
        defaultText: "/run/fairlead",
        help: "Folder for the memory of who owned a service while it has no endpoints.",
      },
      {
        name: "manifests",
        type: type.string,
        withConfig: true,
        help: "File or folder of Kubernetes objects (YAML or JSON), followed live, in place of the API server.",
      },
    ],
  },
  {
    title: "Node",
    flags: [
      {
        name: "hostname-override",
        type: type.string,
        fields: ["hostnameOverride"],
        withConfig: true,
        help: "Name of the Node, where it is not the host's name.",
      },
      {
        name: "bind-address",
        type: type.ip,
        fields: ["bindAddress"],
        defaultText: "0.0.0.0",
        help: "The node's primary IP, where it is not the one of its Node. Nothing is bound to it.",
      },
      {
        name: "oom-score-adj",
        type: type.int32,
        fields: ["oomScoreAdj"],
        defaultText: "-999",
        help: "The process's oom-score-adj, from -1000 to 1000.",
      },
      {
        name: "nodeport-addresses",
        type: type.strings,
        fields: ["nodePortAddresses"],
        help: "Node addresses that serve node ports: CIDRs and the words primary, localhost, all. Default: all, in nftables mode primary.",
      },
    ],
  },
];
